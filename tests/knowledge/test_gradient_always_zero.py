"""Gradients that are 0 whatever the values are: the operation, and what is proposed first."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from knowledge.played import added, edited, play

from autograd_explain.model import Confidence, Outcome

HEAD = """# %%
import torch
from torch import nn
torch.manual_seed(0)
enc, dec = nn.Linear(3, 4), nn.Linear(4, 2)
opt = torch.optim.SGD([*enc.parameters(), *dec.parameters()], lr=0.1)
x = torch.randn(5, 3)
# %%
opt.zero_grad()
h = enc(x)
"""
TAIL = """
loss.backward()
opt.step()
"""


@dataclass(frozen=True)
class Row:
    program: str
    operation: str
    fix: str
    lines: tuple[str, ...]


ROWS = {
    "the result is rounded": Row(
        "loss = torch.round(dec(h)).sum()", "torch.round(dec(h))", "left_out",
        ("loss = dec(h).sum()",),
    ),
    "a method": Row(
        "loss = dec(h).floor().square().sum()", "dec(h).floor()", "left_out",
        ("loss = dec(h).square().sum()",),
    ),
    "inside the model": Row(
        "loss = dec(torch.sign(h)).sum()", "torch.sign(h)", "repair_straight_through",
        ("loss = dec(h + (torch.sign(h) - h).detach()).sum()",),
    ),
    "inside the model, of a call": Row(
        "loss = dec(h.tanh().round() * 2).sum()", "h.tanh().round()", "repair_straight_through",
        (
            "new_value = h.tanh()",
            "loss = dec((new_value + (new_value.round() - new_value).detach()) * 2).sum()",
        ),
    ),
    "a division that rounds": Row(
        'loss = torch.div(dec(h), 2, rounding_mode="floor").sum()',
        'torch.div(dec(h), 2, rounding_mode="floor")', "left_out",
        ("loss = torch.div(dec(h), 2).sum()",),
    ),
    "a sum that takes away what it adds": Row(
        "codes = nn.Parameter(torch.rand(5, 4))\nq = codes * 2\nloss = dec(h + (q - h)).sum()",
        "h + (q - h)", "difference", ("loss = dec(h + (q - h).detach()).sum()",),
    ),
    "a sum that takes away what it adds, the other way round": Row(
        "q = dec.weight.sum(0)\nloss = dec((q - h) + h).sum()",
        "(q - h) + h", "difference", ("loss = dec((q - h).detach() + h).sum()",),
    ),
    "the nearest pixel, as for a target that is not recorded": Row(
        "def warped(grid, mode):\n    return nn.functional.grid_sample(image, grid, mode=mode)\n"
        "image = torch.rand(1, 1, 6, 6)\nwith torch.no_grad():\n"
        '    target = warped(torch.zeros(1, 5, 1, 2), "nearest")\n'
        'out = warped(dec(h).view(1, 5, 1, 2), "nearest")\nloss = (out - target).square().sum()',
        "nn.functional.grid_sample(image, grid, mode=mode)", "bilinear",
        ('out = warped(dec(h).view(1, 5, 1, 2), "bilinear")',),
    ),
    "a density of a sample with its graph": Row(
        "spread = nn.Parameter(torch.zeros(1))\nopt.add_param_group({'params': [spread]})\n"
        "dist = torch.distributions.Normal(dec(h), spread.exp())\ndrawn = dist.rsample()\n"
        "loss = dist.log_prob(drawn).sum()",
        "dist.log_prob(drawn)", "detach_sum", ("loss = dist.log_prob(drawn.detach()).sum()",),
    ),
}  # fmt: skip


@pytest.mark.one_in(6)
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_the_operation_is_named(row: Row) -> None:
    cells = tuple(c.strip("\n") for c in (HEAD + row.program + TAIL).split("# %%\n")[1:])
    found = play(cells, watched=True, verify=True).diagnosis
    assert found is not None and found.finding.cause == "gradient_always_zero"
    assert found.finding.confidence is Confidence.PROVEN
    assert found.finding.facts["operation"] == row.operation
    first = found.rewrites[0]
    assert (first.fix, first.outcome, first.reason.key) == (row.fix, Outcome.RUNS, "nonzero")
    new = edited(cells, first)
    assert tuple(added(cells, new)) == row.lines


QUIET = {
    "straight through": "loss = dec(h + (h.round() - h).detach()).sum()",
    "a sample that another term reads": "dist = torch.distributions.Normal(dec(h), 1.0)\n"
    "drawn = dist.rsample()\nloss = (dist.log_prob(drawn) + drawn.square()).sum()",
    "another way": "loss = dec(h * h.sign()).sum()",
    "no part of the loss": "loss = dec(h).sum()\ncount = torch.round(dec(h))",
    "a residual that is scaled": "loss = dec(h + 0.5 * (h.sin() - h)).sum()",
    "a function of what is taken away": "loss = dec(h + (h.sin() - h)).sum()",
    "a sum beside another term": "loss = dec(h + (dec.weight.sum(0) - h)).sum() + h.sum()",
    "only nearly": "loss = (dec(h) - dec(h).floor()).sum()",
    "zeros by chance": "loss = (dec(h).clamp(9, 10).round() + dec(h) * 0).sum()",
}


@pytest.mark.parametrize("program", QUIET.values(), ids=QUIET)
def test_other_programs_are_left_alone(program: str) -> None:
    cells = tuple(c.strip("\n") for c in (HEAD + program + TAIL).split("# %%\n")[1:])
    assert play(cells, watched=True).diagnosis is None


def test_a_gradient_that_came_otherwise_decides() -> None:
    """A second backward fills the same parameters: what a step finds is not 0."""
    cells = (
        HEAD.split("# %%\n")[1],
        "h = enc(x)\nloss = dec(h).round().sum()\nloss.backward()\n"
        "dec(enc(x)).sum().backward()\nopt.step()",
    )
    assert play(cells, watched=True).diagnosis is None
