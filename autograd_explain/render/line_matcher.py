"""What an edit changes in a text, found without comparing what it leaves alone."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal, TypeAlias

#: As of `difflib`: tag, begin and end in the old lines, begin and end in the new ones.
Opcode: TypeAlias = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]


class LineMatcher(SequenceMatcher[str]):
    """Opcodes from the lines of one text to those of another.

    The lines that both begin and end with are set aside first: comparing whole files takes
    seconds where an edit changes one line of ten thousand.
    """

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self.start = _alike(old, new, min(len(old), len(new)))
        rest = min(len(old), len(new)) - self.start
        self.alike = _alike(old[::-1], new[::-1], rest)
        self.ends = len(old) - self.alike, len(new) - self.alike
        a, b = self.ends
        super().__init__(None, old[self.start : a], new[self.start : b])

    def get_opcodes(self) -> list[Opcode]:
        """The opcodes of the whole texts."""
        start, alike, (a, b) = self.start, self.alike, self.ends
        within: list[Opcode] = [
            (tag, i + start, j + start, k + start, m + start)
            for tag, i, j, k, m in super().get_opcodes()
        ]
        before: list[Opcode] = [("equal", 0, start, 0, start)] if start else []
        after: list[Opcode] = [("equal", a, a + alike, b, b + alike)] if alike else []
        return [*before, *within, *after]


def _alike(old: Sequence[str], new: Sequence[str], most: int) -> int:
    """How many lines both begin with, `most` at most."""
    return next((n for n in range(most) if old[n] != new[n]), most)
