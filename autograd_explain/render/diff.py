"""A rewrite as numbered lines: what goes, what comes, and a little around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..model import Edit, lines_of
from .line_matcher import LineMatcher


@dataclass(frozen=True)
class Line:
    """`sign` is " ", "-" or "+"; `number` counts in the old text for "-", else in the new.

    `start` and `end` delimit what differs from the line that stands for it on the other side.
    """

    sign: str
    number: int
    text: str
    start: int = 0
    end: int = 0


@dataclass(frozen=True)
class Hunk:
    """Lines that belong together, of one cell or file."""

    where: str
    lines: tuple[Line, ...]


def hunks_of(edit: Edit, context: int = 1) -> Iterator[Hunk]:
    """The changed stretches of an edit with `context` lines around each."""
    where = edit.file or f"In[{edit.cell}]"
    old, new = lines_of(edit.old_source), lines_of(edit.new_source)
    for group in LineMatcher(old, new).get_grouped_opcodes(context):
        lines = [line for code in group for line in _lines(code, old, new)]
        yield Hunk(where, tuple(_without_blank_ends(lines)))


def _lines(code: tuple[str, int, int, int, int], old: list[str], new: list[str]) -> Iterator[Line]:
    tag, i1, i2, j1, j2 = code
    if tag == "equal":
        yield from (Line(" ", j + 1, new[j]) for j in range(j1, j2))
        return
    gone, come = old[i1:i2], new[j1:j2]
    yield from (Line("-", i1 + n, *_against(t, come, n - 1)) for n, t in enumerate(gone, 1))
    yield from (Line("+", j1 + n, *_against(t, gone, n - 1)) for n, t in enumerate(come, 1))


def _against(text: str, others: list[str], number: int) -> tuple[str, int, int]:
    """A line with the columns in which it differs from the line of the same number."""
    other = others[number] if number < len(others) else ""
    start = _alike(text, other)
    return text, start, len(text) - _alike(text[start:][::-1], other[start:][::-1])


def _alike(first: str, second: str) -> int:
    """How many characters two strings have in common from their start."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(first), len(second)))


def _without_blank_ends(lines: list[Line]) -> list[Line]:
    """Context that is an empty line says nothing."""
    while lines and lines[0].sign == " " and not lines[0].text.strip():
        lines = lines[1:]
    while lines and lines[-1].sign == " " and not lines[-1].text.strip():
        lines = lines[:-1]
    return lines
