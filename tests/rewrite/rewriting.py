"""Small tools for the tests of the transformers."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

from notebook import run_cells

from autograd_explain.model import Edit, Place, Span
from autograd_explain.program import Program, Source
from autograd_explain.rewrite.engine.draft import compiles
from autograd_explain.rewrite.engine.edits import apply
from autograd_explain.rewrite.engine.magics import mask

TORCH = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\nimport numpy as np\n"


def program_of(*cells: str) -> Program:
    """A notebook: In[1] imports torch, then the cells from In[2] on."""
    texts = (TORCH, *(textwrap.dedent(c).lstrip("\n") for c in cells))
    return Program(
        Source(number, None, text, text, f"<cell {number}>") for number, text in enumerate(texts, 1)
    )


def at(program: Program, needle: str, cell: int | None = None, nth: int = 0) -> Place:
    """The place of the nth line that holds `needle` (in the newest cell that has one)."""
    for source in reversed(program.cells):
        if cell is not None and source.cell != cell:
            continue
        lines = [n for n, line in enumerate(source.lines, 1) if needle in line]
        if lines:
            line = lines[nth]
            return Place(source.cell, source.file, line, source.lines[line - 1].strip())
    raise LookupError(needle)


def spot(program: Program, needle: str, cell: int | None = None) -> Place:
    """The place of exactly the text `needle`, with its span."""
    place = at(program, needle, cell)
    source = program.source_at(place)
    assert source is not None
    column = source.lines[place.line - 1].index(needle)
    span = Span(place.line, column, place.line, column + len(needle))
    return Place(place.cell, place.file, place.line, place.source, None, span)


def result(edits: tuple[Edit, ...] | None) -> str | None:
    """The new text of the one cell that was edited, or None."""
    if edits is None:
        return None
    (edit,) = edits
    assert edit.old_source != edit.new_source
    return edit.new_source


def cell(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


def rewritten(
    transform: Callable[..., tuple[Edit, ...] | None],
    code: str,
    needle: str,
    *args: Any,
    nth: int = 0,
    **options: Any,
) -> str | None:
    """The cell `code` after a transformer was applied at the line with `needle`; None: declined.

    What comes out compiles, and its magics are those that went in.
    """
    program = program_of(code)
    text = result(transform(program, at(program, needle, 2, nth), *args, **options))
    if text is not None:
        compiled(text)
    return text


def compiled(text: str) -> None:
    python = mask(text)
    assert python is not None
    assert compiles(python.text), text


def run(*cells: str) -> dict[str, Any]:
    """Run cells from the top, as a notebook would; gives the namespace."""
    import torch

    torch.manual_seed(0)
    return run_cells((TORCH, *cells))


def applied(program: Program, edits: tuple[Edit, ...] | None) -> list[str]:
    """The texts of the cells from In[2] on after some edits."""
    edited = apply(program, edits)
    assert edited is not None
    return [c.text for c in edited.program.cells[1:]]
