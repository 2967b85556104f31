"""`autograd.grad` of a GradientEdge: the graph behind it is known as that of a tensor is."""

from __future__ import annotations

import pytest
from knowledge.played import added, edited, play

from autograd_explain.model import What

SETUP = """
import torch
from torch.autograd.graph import get_gradient_edge
x = torch.ones(3, requires_grad=True)
h = x.exp()
edge = get_gradient_edge(h)
"""
GRAD = "torch.autograd.grad({}, x, grad_outputs=(torch.ones(3),))"


@pytest.mark.parametrize("outputs", ["edge", "[edge]", "(get_gradient_edge(k),)"])
@pytest.mark.parametrize("watched", [False, True])
def test_an_overwritten_value_is_found_behind_an_edge(outputs: str, watched: bool) -> None:
    cells = (SETUP, "k = h * 1\nh += 1", GRAD.format(outputs))
    found = play(cells, watched=watched)
    assert found.trouble == "" and found.diagnosis is not None
    finding = found.diagnosis.finding
    write = finding.event(What.CHANGED)
    assert finding.cause == "saved_value_overwritten" and write is not None
    assert write.place is not None and write.place.source == "h += 1"


def test_a_graph_freed_behind_an_edge() -> None:
    line = GRAD.format("edge")
    found = play((SETUP, line, line)).diagnosis
    assert found is not None and found.finding.cause == "second_backward"
    cells = (SETUP, f"{line}\n{line}")
    found = play(cells).diagnosis
    assert found is not None
    repaired = edited(cells, found.rewrites[0])
    assert added(cells, repaired) == [f"{line[:-1]}, retain_graph=True)"]
