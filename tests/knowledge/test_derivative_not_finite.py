"""Gradients that come out infinite or NaN: the operation, its operand, and the first rewrite.

A row is what computes the loss from the leaf `w`, or from a model, and what is told of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from knowledge.played import Played, added, edited, play
from notebook import captured, cells_of, run_cells, shell_with_extension

from autograd_explain.model import Confidence, Outcome

HEAD = """# %%
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
w = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
# %%
"""


@dataclass(frozen=True)
class Row:
    program: str
    variant: str
    operation: str
    operand: str = ""
    value: str = ""
    fix: str = ""
    line: str = ""


ROWS = {
    "sqrt at 0": Row(
        "loss = w.sqrt().sum()", "derivative", "w.sqrt()", "w", "0", "clamp_input",
        "loss = w.clamp_min(1e-12).sqrt().sum()",
    ),
    "sqrt of a sum of squares": Row(
        "loss = torch.sqrt((w * 0).pow(2).sum())", "derivative",
        "torch.sqrt((w * 0).pow(2).sum())", "(w * 0).pow(2).sum()", "0", "clamp_input",
        "loss = torch.sqrt((w * 0).pow(2).sum().clamp_min(1e-12))",
    ),
    "log behind a mask": Row(
        "loss = torch.where(w > 0, w * w.log(), 0.0).sum()", "derivative", "w.log()", "w", "0",
        "where_inside",
        "loss = torch.where(w > 0, w * torch.where(w > 0, w, 1.0).log(), 0.0).sum()",
    ),
    "the other branch of a mask": Row(
        "loss = torch.where(w == 0, 0.0, w.rsqrt()).sum()", "derivative", "w.rsqrt()", "w", "0",
        "where_inside",
        "loss = torch.where(w == 0, 0.0, torch.where(w == 0, 1.0, w).rsqrt()).sum()",
    ),
    "an overflow behind a mask": Row(
        "x = w * 100\nloss = torch.where(x < 50, x.exp(), 0.0).sum()", "derivative", "x.exp()",
        "x", "100 … 200", "where_inside",
        "loss = torch.where(x < 50, torch.where(x < 50, x, 1.0).exp(), 0.0).sum()",
    ),
    "a power": Row(
        "loss = (w ** 0.5).sum()", "derivative", "w ** 0.5", "w", "0", "clamp_input",
        "loss = (w.clamp_min(1e-12) ** 0.5).sum()",
    ),
    "a mask behind a quotient": Row(
        "ratio = w / w\nloss = ratio[w > 0].sum() + w.sum()", "derivative", "w / w", "w", "0",
        "where_inside", "ratio = w / torch.where(w > 0, w, 1.0)",
    ),
    "a mask behind what is filled": Row(
        "here = w > 0\nlogs = w.log()\nloss = (w * logs).masked_fill(~here, 0.0).sum()",
        "derivative", "w.log()", "w", "0",
        "where_inside", "logs = torch.where(~here, 1.0, w).log()",
    ),
    "a mask that is multiplied with": Row(
        "here = (w > 0).float()\nlogs = w.log()\nloss = (logs * here).sum()",
        "value", "w.log()", "w", "0",
        "where_inside", "logs = torch.where(here != 0, w, 1.0).log()",
    ),
    "a mask that is known only later": Row(
        "logs = w.log()\nloss = torch.where(torch.isfinite(logs), logs, 0.0).sum()",
        "derivative", "w.log()", "w", "0",
        "where_around",
        'logs = torch.where(w == 0, float("-inf"), torch.where(w == 0, 1.0, w).log())',
    ),
    "a divisor of both signs": Row(
        "y = w - 1\nloss = torch.where(y == 0, 0.0, 1 / y).sum()", "derivative", "1 / y", "y",
        "0", "where_inside",
        "loss = torch.where(y == 0, 0.0, 1 / torch.where(y == 0, 1.0, y)).sum()",
    ),
    "a divisor of both signs, without a mask": Row(
        "y = w - 1\nloss = (w / y)[::2].sum()", "derivative", "w / y", "y",
        "0", "nonzero", "loss = (w / torch.where(y == 0, 1.0, y))[::2].sum()",
    ),
    "acos at 1": Row(
        "loss = torch.acos(w.clamp(max=1)).sum()", "derivative", "torch.acos(w.clamp(max=1))",
        "w.clamp(max=1)", "1", "clamp_input",
        "loss = torch.acos(w.clamp(max=1).clamp_max(0.999999)).sum()",
    ),
    "acos behind a mask": Row(
        "c = w - 1\nloss = torch.where(c.abs() < 1, torch.acos(c), 0.0).sum()", "derivative",
        "torch.acos(c)", "c", "-1 … 1", "where_inside",
        "loss = torch.where(c.abs() < 1, torch.acos(torch.where(c.abs() < 1, c, 0.0)), 0.0).sum()",
    ),
    "asin at both ends": Row(
        "loss = torch.asin(w - 1).sum()", "derivative", "torch.asin(w - 1)", "w - 1", "-1 … 1",
        "clamp_input", "loss = torch.asin((w - 1).clamp(-0.999999, 0.999999)).sum()",
    ),
    "atanh": Row(
        "loss = torch.atanh((w / 2).clamp(max=1)).nan_to_num(posinf=9).sum()", "derivative",
        "torch.atanh((w / 2).clamp(max=1))", "(w / 2).clamp(max=1)", "1", "clamp_input",
        "loss = torch.atanh((w / 2).clamp(max=1).clamp_max(0.999999)).nan_to_num(posinf=9).sum()",
    ),
    "a norm, differentiated twice": Row(
        "x = w * 0\n(slope,) = torch.autograd.grad(x.norm(), x, create_graph=True)\n"
        "loss = slope.sum()",
        "derivative_line", "torch.autograd.grad(x.norm(), x, create_graph=True)",
    ),
    "eigenvectors of equal values": Row(
        "a = w[1] * torch.eye(2)\nlam, v = torch.linalg.eigh(a)\n"
        "loss = (v * torch.arange(2)).sum()", "repeated", "torch.linalg.eigh(a)", "a", "", "apart",
        "lam, v = torch.linalg.eigh(a + 3e-04 * torch.arange(a.shape[-1]).diag().to(a))",
    ),
    "singular vectors": Row(
        "b = torch.eye(3) * w[1]\nu, s, v = torch.linalg.svd(b)\nloss = (u[0] + v[1]).sum()",
        "repeated", "torch.linalg.svd(b)", "b", "", "apart",
        "u, s, v = torch.linalg.svd(b + 3e-04 * torch.arange(b.shape[-1]).diag().to(b))",
    ),
    "std of one element": Row(
        "loss = w[:1].std()", "value_line", "w[:1].std()", "", "", "correction",
        "loss = w[:1].std(correction=0)",
    ),
    "log of 0 in the loss": Row(
        "loss = torch.log(w).sum()", "value", "torch.log(w)", "w", "0", "clamp_input",
        "loss = torch.log(w.clamp_min(1e-12)).sum()",
    ),
    "a row that is masked as a whole": Row(
        "scores = w.masked_fill(torch.ones(3) > 0, float('-inf'))\n"
        "loss = (torch.softmax(scores, 0) * w).sum()",
        "value", "torch.softmax(scores, 0)", "scores", "-inf",
    ),
    "nan in the data": Row(
        "x = torch.tensor([1.0, float('nan'), 2.0])\nloss = (w * x).sum()", "input", "w * x", "x",
        "nan",
    ),
    "in a function": Row(
        "def length(v):\n    return v.pow(2).sum(-1).sqrt()\nloss = length(w[:, None]).sum()",
        "derivative", "v.pow(2).sum(-1).sqrt()", "v.pow(2).sum(-1)", "0", "clamp_input",
        "return v.pow(2).sum(-1).clamp_min(1e-12).sqrt()",
    ),
    "a module's function": Row(
        "class Gate(nn.Module):\n    def forward(self, v):\n"
        "        return F.softplus(v).sum() + v.reciprocal().mul(0).nan_to_num().sum()\n"
        "loss = Gate()(w)",
        "derivative", "v.reciprocal()", "v", "0", "where_around",
        'return F.softplus(v).sum() + torch.where(v == 0, float("inf"), '
        "torch.where(v == 0, 1.0, v).reciprocal()).mul(0).nan_to_num().sum()",
    ),
    "a Function of one's own": Row(
        "class Root(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, v):\n"
        "        ctx.save_for_backward(v)\n        return v.sqrt()\n    @staticmethod\n"
        "    def backward(ctx, g):\n        (v,) = ctx.saved_tensors\n"
        "        return g / (2 * v.sqrt())\nloss = Root.apply(w).sum()",
        "derivative_line", "@staticmethod",
    ),
}  # fmt: skip


def told(program: str, backward: str = "loss.backward()") -> Played:
    found = play(cells_of(f"{HEAD}{program}\n{backward}\n"), watched=True, verify=True)
    assert found.trouble == "", found.trouble
    return found


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", ROWS)
def test_the_operation_is_named(name: str) -> None:
    row = ROWS[name]
    found = told(row.program)
    assert found.diagnosis is not None, found.output
    finding = found.diagnosis.finding
    facts = finding.facts
    assert finding.cause == "derivative_not_finite", found.output
    assert (finding.variant, facts["operation"]) == (row.variant, row.operation)
    if row.operand:
        assert (facts["operand"], facts["value"]) == (row.operand, row.value)
    rewrites = [r for r in found.diagnosis.rewrites if r.fix == row.fix]
    if row.fix:
        assert found.diagnosis.rewrites[0].fix == row.fix, found.output
        cells = cells_of(f"{HEAD}{row.program}\nloss.backward()\n")
        assert added(cells, edited(cells, rewrites[0])) == row.line.split("\n")
        assert (rewrites[0].outcome, rewrites[0].reason.key) == (Outcome.RUNS, "finite")
        space = run_cells(edited(cells, rewrites[0]))
        assert bool(space["w"].grad.isfinite().all())


def test_what_the_operation_reads_and_gives_is_named() -> None:
    found = play(
        cells_of(HEAD + "p = w * 2\nd = torch.log(p)\nd.sum().backward()"),
        watched=True,
        verify=True,
    )
    assert found.diagnosis is not None
    assert [t.names for t in found.diagnosis.finding.tensors] == [("w",), ("d",), ("p",)]


def test_a_step_that_loses_the_parameters_is_told_once() -> None:
    """The first backward that made it is blamed, and a later cell is not for what it found."""
    head = HEAD + "opt = torch.optim.SGD([w], lr=0.1)\n"
    train = "for _ in range(3):\n    opt.zero_grad()\n    loss = w.sqrt().sum()\n"
    train += "    loss.backward()\n    opt.step()\nopt.zero_grad()\n"
    found = play(cells_of(head + train), watched=True, verify=True)
    assert found.diagnosis is not None, found.output
    assert found.diagnosis.finding.facts["operation"] == "w.sqrt()"
    assert found.diagnosis.finding.awaited == ("w",)
    with shell_with_extension() as shell, captured() as output:
        shell.run_line_magic("autograd_check", "on --no-verify")
        for cell in (*cells_of(head + train), train):
            shell.run_cell(cell, store_history=True)
    assert output.getvalue().count("autograd_explain · derivative_not_finite") == 1


def test_the_parameters_of_a_model_that_lived_in_a_function() -> None:
    """They are gone when the cell has ended; another run still has their names."""
    train = (
        "def train():\n    net = nn.Linear(3, 1, bias=False)\n"
        "    opt = torch.optim.SGD(net.parameters(), lr=0.1)\n    for _ in range(3):\n"
        "        opt.zero_grad()\n        loss = net(torch.zeros(2, 3)).sum().abs().sqrt()\n"
        "        loss.backward()\n        opt.step()\ntrain()\n"
    )
    found = play(cells_of(HEAD + train), watched=True, verify=True)
    assert found.diagnosis is not None, found.output
    finding, rewrite = found.diagnosis.finding, found.diagnosis.rewrites[0]
    assert finding.facts["operand"] == "net(torch.zeros(2, 3)).sum().abs()"
    assert finding.facts["parameter"] == "net.weight"
    assert (rewrite.outcome, rewrite.reason.key) == (Outcome.RUNS, "finite")


QUIET = {
    "finite": "loss = w.sum()",
    "an infinity that a mask puts in": (
        "loss = (torch.softmax(w.masked_fill(w > 1, float('-inf')), 0) * w).sum()"
    ),
    "a hook that mends it": (
        "w.register_hook(lambda g: g.nan_to_num(posinf=0.0))\nloss = w.sqrt().sum()"
    ),
    "a scaled loss": (
        "scaler = torch.amp.GradScaler('cpu', init_scale=2.0 ** 120)\n"
        "loss = scaler.scale((w * 1e9).sum())"
    ),
}


@pytest.mark.parametrize("name", QUIET)
def test_no_alarm(name: str) -> None:
    assert told(QUIET[name]).diagnosis is None


def test_without_a_run_the_gradient_is_told_alone() -> None:
    cells = cells_of(f"{HEAD}loss = w.sqrt().sum()\nloss.backward()\n")
    found = play(cells, watched=True)
    assert found.diagnosis is not None
    assert found.diagnosis.finding.confidence is Confidence.LIKELY
    assert found.diagnosis.finding.facts["kind"] == "inf"
    assert found.diagnosis.finding.facts["operation"] == ""
