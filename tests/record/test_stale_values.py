"""Values that are computed once and read again after the leaves behind them were updated."""

from __future__ import annotations

import pytest
from watching import signals

HEAD = """\
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.ones(4, 2), torch.arange(4.)
a, b = (torch.ones(1, requires_grad=True) for _ in range(2))
first, second = nn.Linear(2, 3), nn.Linear(3, 1)
opt = torch.optim.SGD([a, b, *first.parameters(), *second.parameters()], lr=0.01)
class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.dx, self.dy = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
        self.by = torch.cat([self.dx, self.dy])
        self.row = self.dx.view(1, 1)
    def forward(self, x):
        return x + self.by
shift = Shift()
"""
STEP = "\n    opt.step()\n    opt.zero_grad()"
LOOP = "for i in range(4):\n    "

#: The cell, and the line that computed the value.
STALE = {
    "before the loop": (
        f"w = torch.cat([a, b])\n{LOOP}(x @ w - y).pow(2).sum().backward(){STEP}",
        "w = torch.cat([a, b])",
    ),
    "in a constructor": (
        "opt = torch.optim.SGD(shift.parameters(), lr=0.1)\n"
        f"{LOOP}shift(x).pow(2).sum().backward(){STEP}",
        "self.by = torch.cat([self.dx, self.dy])",
    ),
    "kept by retain_graph": (
        f"h = first(x)\n{LOOP}second(h).pow(2).sum().backward(retain_graph=True){STEP}",
        "h = first(x)",
    ),
    "the whole loss": (
        f"loss = (x @ a.repeat(2) - y).pow(2).sum()\n{LOOP}loss.backward(retain_graph=True){STEP}",
        "loss = (x @ a.repeat(2) - y).pow(2).sum()",
    ),
    "updated by hand": (
        f"w = torch.cat([a, b])\n{LOOP}(x @ w - y).pow(2).sum().backward()\n"
        "    with torch.no_grad():\n        a -= 0.01 * a.grad\n    a.grad = b.grad = None",
        "w = torch.cat([a, b])",
    ),
}
CURRENT = {
    "computed in the loop": f"{LOOP}w = torch.cat([a, b])\n    (x @ w - y).pow(2).sum().backward()"
    + STEP,
    "the leaf's own memory": f"w = first.weight.t()\n{LOOP}(x @ w).pow(2).sum().backward(){STEP}",
    "the leaf's own memory, kept by an object": "opt = torch.optim.SGD(shift.parameters(), 0.1)\n"
    f"{LOOP}(x * shift.row).pow(2).sum().backward(){STEP}",
    "the leaf's own memory as complex numbers": "pairs = torch.ones(2, 2, requires_grad=True)\n"
    "opt, z = torch.optim.SGD([pairs], 0.1), torch.view_as_complex(pairs).conj()\n"
    f"{LOOP}(x * z).abs().sum().backward(){STEP}",
    "a leaf that stays": f"w = torch.cat([a, b])\nopt = torch.optim.SGD(first.parameters(), 0.1)\n"
    f"{LOOP}(first(x).sum(1) + x @ w).pow(2).sum().backward(){STEP}",
    "two losses of one pass": f"{LOOP}h = first(x)\n    h.sum().backward(retain_graph=True)\n"
    f"    h.pow(2).sum().backward(){STEP}",
    "each loss with its step": f"{LOOP}h = first(x)\n    h.sum().backward(retain_graph=True)"
    f"{STEP}\n    h.pow(2).sum().backward(){STEP}",
    "without a graph": f"w = torch.cat([a, b]).detach()\n"
    f"{LOOP}(first(x).sum(1) + x @ w).pow(2).sum().backward(){STEP}",
}


@pytest.mark.parametrize("name", STALE)
def test_an_old_value_is_told_with_the_line_that_computed_it(name: str) -> None:
    cell, line = STALE[name]
    found = [s for s in signals((HEAD, cell)) if s.name == "stale-value"]
    assert [s.moments["made"][0].place.source for s in found] == [line]


@pytest.mark.parametrize("name", CURRENT)
def test_a_current_value_is_not(name: str) -> None:
    assert not [s for s in signals((HEAD, CURRENT[name])) if s.name == "stale-value"]
