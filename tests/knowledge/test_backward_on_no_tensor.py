"""`backward()` on what is no tensor: it is told what it is, never as a graph that was cut."""

from __future__ import annotations

import pytest
from knowledge.played import added, edited, explained, play

SETUP = """
import numpy as np
import torch
from torch import nn
w = torch.ones(3, requires_grad=True)
def square(x):
    return (x * x).sum()
def nothing(x):
    (x * x).sum()
def both(x):
    return (x * x).sum(), x * 2
"""


@pytest.mark.parametrize(
    ("made", "variant", "line"),
    [
        ("loss = square", "function", ""),
        ("loss = (w * w).sum", "function", "loss = (w * w).sum()"),
        ("loss = nn.MSELoss()", "module", ""),
        ("loss = f'{square(w)}'", "text", ""),
        ("loss = [square(w), w.sum()]", "container", "sum(loss).backward()"),
        ("loss = both(w)", "container", "loss[0].backward()"),
        ("loss = {'mse': square(w), 'n': 3}", "container", "loss['mse'].backward()"),
        ("loss = nothing(w)", "nothing", ""),
        ("loss = iter([square(w)])", "", ""),
        ("loss = np.ones(3)", "values", ""),
        ("loss = np.square(np.float32(3)) + 1", "values", ""),
        ("loss = 0.0", "values", ""),
    ],
)
def test_what_it_is(made: str, variant: str, line: str) -> None:
    cells = (SETUP, made, "loss.backward()")
    found = explained(cells)
    assert found.finding.cause == "backward_on_no_tensor"
    assert found.finding.variant == variant
    repaired = [added(cells, edited(cells, r)) for r in found.rewrites]
    assert repaired == ([[line]] if line else [])
    assert all(play(edited(cells, r)).diagnosis is None for r in found.rewrites)


@pytest.mark.parametrize(
    "made",
    [
        "loss = square(w).item()",
        "loss = square(w).detach().numpy()",
        "loss = np.float64(square(w).item())",
    ],
)
def test_a_number_was_a_tensor(made: str) -> None:
    assert explained((SETUP, made, "loss.backward()")).finding.cause == "graph_cut"
