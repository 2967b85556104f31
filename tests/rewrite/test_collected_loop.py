"""A loop that writes its elements made one that collects new ones."""

from __future__ import annotations

import pytest
import torch
from rewriting import at, cell, program_of, result, rewritten, run

from autograd_explain.knowledge.multi_view_written.collected_loop import collected_loop

#: A cell, the written element, whether the loop goes through a tensor, the statement that joins.
LOOPS = {
    "rows": (
        """
        for row in x:
            row /= row.norm()  # unit length
        """,
        ("row", True, "x = torch.stack(new_rows)"),
    ),
    "rows by number": (
        """
        for i, row in enumerate(x):
            row.mul_(i).add_(1)
        """,
        ("row", True, "x = torch.stack(new_rows)"),
    ),
    "fewer partners than rows": (
        """
        for row, factor in zip(x, (2.0, 3.0)):
            row *= factor
        """,
        ("row", True, "x = torch.stack(new_rows)"),
    ),
    "list of views": (
        """
        parts = x.unbind(dim=1)
        for part in parts:
            if part.sum() > 0:
                part -= part.mean()
            part /= part.abs().max()
        x = torch.stack(parts)
        """,
        ("part", False, "parts = new_parts"),
    ),
    "list of views in pairs": (
        """
        parts = x.unbind(1)
        for part, m in zip(parts, (1, 2)):
            part.sub_(m)
        x = torch.stack(parts, 1)
        """,
        ("part", False, "parts[i] = part"),
    ),
    "views made in the head": (
        """
        for part in torch.split(x, 2, dim=0):
            part.clamp_(min=part.mean())
        """,
        ("part", False, "x = torch.cat(new_parts, dim=0)"),
    ),
    "parts of the elements": (
        """
        for part in x.unbind(1):
            part[0] = 7
        """,
        ("part", False, "x = torch.stack(new_parts, dim=1)"),
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_same_values(name: str) -> None:
    code, (element, tensor, joined) = LOOPS[name]
    needle = next(w for w in ("/=", "mul_(", "*=", "sub_(", "clamp_(", "part[0]") if w in code)
    text = rewritten(collected_loop, cell(code), needle, element, tensor=tensor)
    assert text is not None and joined in text
    setup = "x = torch.arange(12.).view(4, 3) - 4\n"
    before, after = run(setup + cell(code)), run(setup + text)
    torch.testing.assert_close(before["x"], after["x"])


@pytest.mark.parametrize(
    "code",
    [
        "for row in x:\n    row /= 2\n    if row.sum() > 3: break\n",
        "for row in x:\n    row /= x.sum()\n",
        "for row in x * 2:\n    row /= 2\n",
        "def halve(x):\n    for row in x:\n        row /= 2\n",
        "for row in x:\n    row /= 2\nlast = row\n",
        "for row, y in pairs:\n    row /= 2\n",
        "for row in x:\n    row /= 2\n    row = row.exp()\n    total = total + row.sum()\n",
        "for i, row in enumerate(x):\n    for i in range(2):\n        row /= 2\n",
        "for row, last in zip(x, [first, *x]):\n    row /= last\n",
        "x = y[:2]\nfor row in x:\n    row /= 2\nprint(y)\n",
        "for row in x.T:\n    row /= 2\n",
    ],
)
def test_declined(code: str) -> None:
    assert rewritten(collected_loop, code, "row /=", "row", tensor=True) is None


def test_torch_by_another_name() -> None:
    code = "import torch as t\nfor part in t.split(x, 2):\n    part.mul_(2)\n"
    text = rewritten(collected_loop, code, "mul_", "part")
    assert text is not None and text.endswith("x = t.cat(new_parts)\n")


def test_number_that_no_other_cell_uses() -> None:
    program = program_of("i = 5", "for row, f in zip(x, fs):\n    row *= f\n", "print(i)")
    text = result(collected_loop(program, at(program, "row *= f"), "row", tensor=True))
    assert text is not None and "for j, (row, f) in enumerate(zip(x, fs)):" in text
