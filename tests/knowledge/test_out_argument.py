"""`out=` with a gradient: a notebook, and the lines of its rewrite, [] where none is safe."""

from __future__ import annotations

import pytest
from knowledge.played import added, edited, explained
from knowledge.test_cases import run

from autograd_explain.render.topic_content import cells_of

START = """# %%
import torch
w = torch.ones(3, requires_grad=True)
kept = torch.empty(3)
x = torch.rand(4, 3)
# %%
"""
STEP = "def step(x):\n    torch.mul(x, w, out=kept)\n    return kept.sum()\n"
ROWS = "for i in range(3):\n    torch.mul(x[i], w, out=rows[i])\n"
PROGRAMS: dict[str, tuple[str, list[str]]] = {
    "a buffer of the module": (STEP + "step(x[0])\n", []),
    "a name for a part of a buffer": (
        "row = x[1]\ntorch.mul(x[0], w, out=row)\nx.sum().backward()\n",
        [],
    ),
    "rows": (
        f"rows = torch.empty(4, 3)\n{ROWS}torch.mul(x[3], w, out=rows[3])\nrows.sum().backward()\n",
        ["rows[i] = torch.mul(x[i], w)", "rows[3] = torch.mul(x[3], w)"],
    ),
    "rows computed from the rows before": (
        f"rows = torch.ones(4, 3)\n{ROWS.replace('x[i], w', 'rows[i - 1], w')}",
        [],
    ),
    "rows of one buffer for many graphs": (
        "rows = torch.empty(4, 3)\nfor _ in range(2):\n"
        "    torch.mul(x[0], w, out=rows[0])\n    rows[0].sum().backward()\n",
        [],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text, lines = PROGRAMS[name]
    cells = cells_of(START + text)
    found = explained(cells)
    assert found.finding.cause == "out_argument_with_grad"
    repaired = edited(cells, found.rewrites[0]) if found.rewrites else cells
    assert added(cells, repaired) == lines
    if lines:
        run(repaired)
