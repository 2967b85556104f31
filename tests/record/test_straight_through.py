"""Straight-through sums, and those the wrong way round."""

from __future__ import annotations

import pytest
from watching import signals

HEAD = """\
import torch
from torch import nn
torch.manual_seed(0)
enc, dec, book = nn.Linear(4, 3), nn.Linear(3, 4), nn.Embedding(6, 3)
opt = torch.optim.SGD([*enc.parameters(), *dec.parameters(), *book.parameters()], lr=0.1)
x = torch.randn(8, 4)
def nearest(z):
    return torch.cdist(z, book.weight).argmin(1)
"""
LOOP = (
    "for _ in range(2):\n    opt.zero_grad()\n    z = enc(x)\n    q = book(nearest(z))\n"
    "    beside = (q - z.detach()).pow(2).mean() + (z - q.detach()).pow(2).mean()\n"
    "    s = {}\n    loss = (dec(s) - x).pow(2).mean() + beside\n    loss.backward()\n"
    "    opt.step()"
)
WRONG = ("q + (z - q).detach()", "(z - q).detach() + q")
RIGHT = (
    "z + (q - z).detach()",
    "(q - z).detach() + z",
    "z - (z - q).detach()",
    "q",
    "q + z.detach()",
    "(q + (z - q)).detach()",
)
#: A fixed point found outside the graph, through which the last call alone hands the gradient.
FIXED_POINT = (
    "with torch.no_grad():\n    z = enc(x)\nfor _ in range(2):\n    opt.zero_grad()\n"
    "    q = torch.tanh(z) + enc(x)\n    s = q + (z - q).detach()\n"
    "    dec(s).mean().backward()\n    opt.step()"
)


@pytest.mark.parametrize("written", WRONG)
def test_the_wrong_way_round(written: str) -> None:
    (found,) = signals((HEAD, LOOP.format(written)))
    assert (found.name, found.evidence["way"]) == ("graph-cut", "swapped")
    assert (found.evidence["value"], found.evidence["passed"]) == ("z", "q")
    assert found.moments["cut"][0].place.line == 6


@pytest.mark.parametrize("written", ["(z + (q - z)).detach()", "((q - z) + z).detach()"])
def test_stopped_as_a_whole(written: str) -> None:
    (found,) = signals((HEAD, LOOP.format(written)))
    assert (found.name, found.evidence["way"]) == ("graph-cut", "stopped_sum")
    assert (found.evidence["value"], found.evidence["passed"]) == ("z", "q")


@pytest.mark.parametrize("written", RIGHT)
def test_other_sums_are_not_told(written: str) -> None:
    assert signals((HEAD, LOOP.format(written))) == []


def test_a_fixed_point_is_meant() -> None:
    assert signals((HEAD, FIXED_POINT)) == []
