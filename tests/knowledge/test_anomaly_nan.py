"""What anomaly mode ends a backward for: the operation, its operand, and the first rewrite, with
and without a watched cell; the values are those of a function that has returned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from knowledge.played import added, edited, play
from notebook import cells_of, run_cells

from autograd_explain.model import Certainty, Outcome, What

HEAD = """# %%
import torch
from torch import nn
torch.manual_seed(0)
torch.autograd.set_detect_anomaly(True, check_nan=True)
w = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
# %%
"""


@pytest.fixture(autouse=True)
def _anomaly_mode() -> Iterator[None]:
    """The notebooks turn it on for the whole process."""
    with torch.autograd.set_detect_anomaly(False):
        yield


@dataclass(frozen=True)
class Row:
    """`gradient` is that of the elements that count, and 0."""

    program: str
    operation: str
    operand: str
    fix: str
    line: str
    gradient: tuple[float, ...]


ROWS = {
    "a root that a mask leaves out later": Row(
        "def f(v):\n    n = v * v\n    root = torch.sqrt(n)\n    seen = v > 0\n"
        "    return torch.where(seen, root, 0.0).sum()\nloss = f(w)",
        "torch.sqrt(n)", "n", "clamp_input", "root = torch.sqrt(n.clamp_min(1e-12))", (0, 1, 1),
    ),
    "a number added to the root instead of under it": Row(
        "class Unit(nn.Module):\n    def forward(self, v):\n"
        "        size = v[:, None].square().sum(-1).sqrt()\n        return v / (size + 1e-8)\n"
        "loss = (Unit()(w) * torch.tensor([0.0, 1, 1])).sum()",
        "v[:, None].square().sum(-1).sqrt()", "v[:, None].square().sum(-1)", "clamp_input",
        "size = v[:, None].square().sum(-1).clamp_min(1e-12).sqrt()", (0, 0, 0),
    ),
    "a power below zero whose infinity is replaced": Row(
        "def f(v):\n    scale = v.pow(-0.5)\n    scale[scale == float('inf')] = 0\n"
        "    return scale.sum()\nloss = f(w)",
        "v.pow(-0.5)", "v", "where_around",
        'scale = torch.where(v == 0, float("inf"), torch.where(v == 0, 1.0, v).pow(-0.5))',
        (0, -0.5, -0.1767767),
    ),
    "a division of 1 whose infinity is replaced by 1": Row(
        "def f(v):\n    inverse = 1 / v\n    inverse = inverse.masked_fill(inverse.isinf(), 1.0)\n"
        "    return inverse.sum()\nloss = f(w)",
        "1 / v", "v", "where_around",
        'inverse = torch.where(v == 0, float("inf"), 1 / torch.where(v == 0, 1.0, v))',
        (0, -1, -0.25),
    ),
    "a logarithm whose infinity is replaced": Row(
        "def f(v):\n    return v.log().masked_fill(v == 0, 0.0).sum()\nloss = f(w)",
        "v.log()", "v", "where_inside",
        "return torch.where(v == 0, 1.0, v).log().masked_fill(v == 0, 0.0).sum()",
        (0, 1, 0.5),
    ),
    "an angle at the edge": Row(
        "def f(v):\n    angle = torch.acos(v / 2)\n    return angle[v < 2].sum()\nloss = f(w)",
        "torch.acos(v / 2)", "v / 2", "where_inside",
        "angle = torch.acos(torch.where(v < 2, v / 2, 0.0))", (-0.5, -0.5773503, 0),
    ),
}  # fmt: skip


CHAINS = {
    "a root before a division that a mask leaves out": (
        "def f(v):\n    square = v ** 2\n    size = torch.sqrt(square)\n"
        "    return torch.where(size > 0, 1 / size, 0.0).sum()\nloss = f(w)",
        [
            "size = torch.where(square == 0, 0.0, "
            "torch.sqrt(torch.where(square == 0, 1.0, square)))",
            "return torch.where(size > 0, 1 / torch.where(size > 0, size, 1.0), 0.0).sum()",
        ],
    ),
    "a root as the divisor itself": (
        "square = w ** 2\nloss = torch.where(square > 0, 1 / torch.sqrt(square), 0.0).sum()",
        [
            "loss = torch.where(square > 0, "
            "1 / torch.sqrt(torch.where(square > 0, square, 1.0)), 0.0).sum()",
        ],
    ),
    "a mask on a line of its own": (
        "size = w.pow(2).pow(0.5)\ninverse = 1 / size\n"
        "loss = torch.where(w > 0, inverse, 0.0).sum()",
        [
            "size = torch.where(w.pow(2) == 0, 0.0, "
            "torch.where(w.pow(2) == 0, 1.0, w.pow(2)).pow(0.5))",
            "inverse = 1 / torch.where(w > 0, size, 1.0)",
        ],
    ),
    "a root that a number keeps from 0": (
        "size = torch.sqrt(w ** 2 + 1) - 1\nloss = torch.where(size > 0, 1 / size, 0.0).sum()",
        ["loss = torch.where(size > 0, 1 / torch.where(size > 0, size, 1.0), 0.0).sum()"],
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_what_comes_next_in_a_chain_is_masked_with_it(name: str) -> None:
    program, lines = CHAINS[name]
    cells = cells_of(f"{HEAD}{program}\nloss.backward()\n")
    found = play(cells, watched=False, verify=False)
    assert found.diagnosis is not None, found.output
    rewrite = found.diagnosis.rewrites[0]
    assert added(cells, edited(cells, rewrite)) == lines
    before, after = run_cells(cells_of(f"{HEAD}{program}\n")), run_cells(edited(cells, rewrite))
    assert torch.equal(before["loss"], after["loss"])
    assert after["w"].grad.isfinite().all()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("watched", (False, True), ids=("hook", "check"))
@pytest.mark.parametrize("name", ROWS)
def test_the_operation_and_its_operand_are_named(name: str, watched: bool) -> None:
    row = ROWS[name]
    cells = cells_of(f"{HEAD}{row.program}\nloss.backward()\n")
    found = play(cells, watched=watched, verify=watched)
    assert found.diagnosis is not None, found.output
    finding, rewrite = found.diagnosis.finding, found.diagnosis.rewrites[0]
    assert finding.cause == "anomaly_nan"
    assert finding.variant == ("value" if watched else "operand")
    assert (finding.facts["operation"], finding.facts["operand"]) == (row.operation, row.operand)
    assert rewrite.fix == row.fix
    assert rewrite.outcome is (Outcome.RUNS if watched else Outcome.NOT_TRIED)
    if row.line:
        assert added(cells, edited(cells, rewrite)) == [row.line]
    gradient = run_cells(edited(cells, rewrite))["w"].grad
    assert gradient.tolist() == pytest.approx(row.gradient, abs=1e-5)


def test_one_of_equal_nodes_is_the_one_that_ran_last() -> None:
    """What torch names is the node's kind; those that ran have freed what they saved."""
    program = "def f(v):\n    a = (v + 1).sqrt()\n    b = v.sqrt()\n    c = (v + 2).sqrt()\n"
    program += "    return (a + torch.where(v > 0, b, 0.0) + c).sum()\nf(w).backward()\n"
    found = play(cells_of(HEAD + program), watched=False, verify=False)
    assert found.diagnosis is not None
    assert found.diagnosis.finding.facts["operation"] == "v.sqrt()"


def test_an_infinite_gradient_comes_from_behind() -> None:
    """A power of two has a finite slope: it is the root that hands it an infinite gradient."""
    program = "def f(v):\n    return v.square().sqrt().sum()\nf(w).backward()\n"
    found = play(cells_of(HEAD + program), watched=False, verify=False)
    assert found.diagnosis is not None
    finding = found.diagnosis.finding
    assert (finding.variant, finding.facts["operation"]) == ("behind", "v.square().sqrt()")
    cause = finding.event(What.CAUSE)
    assert cause is not None and cause.certainty is Certainty.INFERRED


def test_an_overflow_is_no_fault_of_what_lies_behind() -> None:
    """The infinity stands in the result of `exp` itself; its input is kept below it."""
    program = "def f(v):\n    up = torch.exp(100 * v)\n"
    program += "    return torch.where(v > 0.5, v, torch.log(1 + up)).sum()\nf(w).backward()\n"
    cells = cells_of(HEAD + program)
    found = play(cells, watched=False, verify=False)
    assert found.diagnosis is not None
    assert found.diagnosis.finding.facts["operation"] == "torch.exp(100 * v)"
    found = play(cells, watched=True, verify=True)
    assert found.diagnosis is not None
    assert found.diagnosis.finding.facts["operand"] == "100 * v"
    new = edited(cells, found.diagnosis.rewrites[0])
    assert added(cells, new) == ["up = torch.exp(torch.where(v > 0.5, 1.0, 100 * v))"]
    assert run_cells(new)["w"].grad.tolist() == pytest.approx([50, 1, 1])
