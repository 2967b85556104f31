"""What a look at living objects consists of, in one language and for no screen in particular."""

from __future__ import annotations

from dataclasses import dataclass

from .rows import Row
from .texts import Passage


@dataclass(frozen=True)
class Picture:
    """Rows with what is drawn beside them, under a title; remarks stand below."""

    title: Passage
    rows: tuple[Row, ...]
    notes: tuple[Passage, ...] = ()


class LookContent:
    """A table, pictures, or both."""

    language: str

    @property
    def command(self) -> str:
        """The magic that it answers."""
        raise NotImplementedError

    @property
    def table(self) -> tuple[tuple[str, ...], ...]:
        """Rows of cells, the headings first; () where there is no table.  The second column tells
        more of the first, and shares it where there is little room."""
        return ()

    @property
    def lines(self) -> tuple[str, ...]:
        """What the table tells, for a screen that is too narrow for it."""
        return ()

    @property
    def pictures(self) -> tuple[Picture, ...]:
        raise NotImplementedError
