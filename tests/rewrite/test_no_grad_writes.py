"""Every write of a function to one leaf goes under no_grad; other tensors' writes stay."""

from __future__ import annotations

import pytest
from rewriting import at, cell, program_of, result

from autograd_explain.knowledge.leaf_written.no_grad_writes import writes_under_no_grad

CASES = {
    "one after the other": (
        """
        w[0] = 1.0
        w[1:] = 2.0
        """,
        """
        with torch.no_grad():
            w[0] = 1.0
            w[1:] = 2.0
        """,
    ),
    "with something between": (
        """
        w[0] = 1.0
        scale = v * 2
        w.mul_(3)
        """,
        """
        with torch.no_grad():
            w[0] = 1.0
        scale = v * 2
        with torch.no_grad():
            w.mul_(3)
        """,
    ),
    "in a loop and behind it": (
        """
        for i in range(3):
            w[i] = i
        w[3] = 0.0
        """,
        """
        for i in range(3):
            with torch.no_grad():
                w[i] = i
        with torch.no_grad():
            w[3] = 0.0
        """,
    ),
    "up to the name's new value": (
        """
        w[0] = 1.0
        w[1] = 1.0
        w = w * 2
        w[2] = v
        """,
        """
        with torch.no_grad():
            w[0] = 1.0
            w[1] = 1.0
        w = w * 2
        w[2] = v
        """,
    ),
    "up to a loop over other tensors": ("w[0] = 1.0\nfor w in others:\n    w[1] = v\n", None),
    "other tensors": ("w[0] = 1.0\nv[1] = 1.0\n", None),
    "the other is guarded": ("w[0] = 1.0\nwith torch.no_grad():\n    w[1] = 1.0\n", None),
}


@pytest.mark.parametrize("name", CASES)
def test_writes(name: str) -> None:
    before, after = CASES[name]
    program = program_of(before)
    line = "w[i] = i" if "w[i]" in before else "w[0] = 1.0"
    edits = writes_under_no_grad(program, at(program, line), ["net.w", "w"])
    assert result(edits) == (None if after is None else cell(after))
