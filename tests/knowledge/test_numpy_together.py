"""Several tensors go to NumPy the same way: one rewrite mends them all."""

from __future__ import annotations

import pytest
from knowledge.played import added, edited, explained, play

SETUP = """
import numpy as np
import torch
from torch import nn
net = nn.Linear(3, 1)
x = torch.ones(2, 3, requires_grad=True)
y = x * 2
"""


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        ("print(x.numpy(), y.numpy())", ["print(x.detach().numpy(), y.detach().numpy())"]),
        ("a = x.numpy()\nb = y.numpy()", ["a = x.detach().numpy()", "b = y.detach().numpy()"]),
        (
            "a = np.asarray(x)\nb = np.exp(y)",
            ["a = np.asarray(x.detach().numpy())", "b = np.exp(y.detach().numpy())"],
        ),
        (
            "a = y.numpy()\ny = net(x)\nb = y.numpy()\ny = torch.ones(2)\nc = y.numpy()",
            ["a = y.detach().numpy()", "b = y.detach().numpy()"],
        ),
        (
            "a = y.numpy()\nwith torch.no_grad():\n    b = (x + 1).numpy() + net(x).numpy()",
            ["a = y.detach().numpy()"],
        ),
    ],
)
def test_one_rewrite_for_all(program: str, lines: list[str]) -> None:
    cells = (SETUP, program)
    found = explained(cells)
    assert found.finding.cause == "numpy_needs_detach"
    repaired = edited(cells, found.rewrites[0])
    assert added(cells, repaired) == lines
    assert play(repaired).diagnosis is None
