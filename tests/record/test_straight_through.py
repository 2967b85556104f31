"""Straight-through sums, and those the wrong way round."""

from __future__ import annotations

import pytest
from watching import session, signals

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


@pytest.mark.parametrize("book", ["book.weight.detach()", "book.weight"])
def test_a_choice_whose_codes_are_stopped_once_more_is_no_part_of_the_cause(book: str) -> None:
    chosen = LOOP.replace("nearest(z)", f"torch.cdist(z.detach(), {book}).argmin(1)")
    *first, beside, through, loss, end, step = chosen.format("z + (q - z).detach()").split("\n")
    lines = (*first, through, beside.replace("q", "s"), loss, end, step)
    (found,) = signals((HEAD, "\n".join(lines)))
    assert [m.place.line for m in found.moments["cut"]] == [5]


TERM = (
    "def chosen(z):\n    q = book(nearest(z))\n    return {}\nfor _ in range(2):\n"
    "    opt.zero_grad()\n    z = enc(x)\n    loss = (dec(z) - x).pow(2).mean()\n"
    "    loss = loss + (chosen(z) - z.detach()).pow(2).mean()\n    loss.backward()\n    opt.step()"
)


@pytest.mark.parametrize("made", ["q.detach()", "torch.no_grad()(lambda: q * 1.0)()"])
def test_a_term_without_a_graph_is_told_by_what_gets_no_gradient(made: str) -> None:
    """Not by what its other side stops on purpose."""
    found, recording = session((HEAD, TERM.format(made)), {})
    assert [m.place.line for s in found for m in s.moments["cut"][:1]] == [3]
    assert recording.suspicions() == ()
