"""Watching a cell: where the recorder is entered and left.

`%autograd_check on` enters it before each cell, `%%autograd_check` at the cell's first line; both
leave it when the cell ends.  The recorder's function mode is torch's thread-local one, not a
context variable: a cell with `await` starts and ends in one thread, so this holds there too.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from ..program import Program
from .guard import guarded


@dataclass(frozen=True)
class Choice:
    """What was asked for with a check; None leaves the setting as it is."""

    verify: bool | None = None
    budget: float | None = None
    language: str | None = None
    automatic: bool = False  #: nobody asked: the run after a failure


class Check:
    """One watched cell."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice
        self.recording: Any = None
        self._stack = ExitStack()

    def enter(self, program: Program, cell: int | None, earlier: Any) -> None:
        """Begin to record, continuing the session's earlier recording."""
        with guarded("record"):
            from ..record import watch

            self.recording = self._stack.enter_context(watch(program, cell, earlier))

    def leave(self) -> None:
        with guarded("record"):
            self._stack.close()
