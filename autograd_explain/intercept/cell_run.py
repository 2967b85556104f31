"""What is noted between the beginning and the end of a cell."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..model import Place
from ..settings import Options
from .cells import Run

if TYPE_CHECKING:
    from ..render.explanation import Explanation
    from ..verification import SeveredValue
    from .verification import DeferredVerification, LaterVerification
    from .watched_cell import WatchedCell


@dataclass
class Warned:
    """A warning's explanation, shown when the cell has ended; its rewrites are tried then."""

    explanation: Explanation
    postponed: DeferredVerification | None = None


@dataclass
class CellRun:
    """A cell that runs: what was shown before it, what it warned of, how it is watched."""

    run: Run
    error_before: int
    warnings: list[Warned] = field(default_factory=list)
    warned: set[tuple[str, Place | None]] = field(default_factory=set)
    check: WatchedCell | None = None
    later: LaterVerification | None = None
    tried: float = 0.0  #: seconds that what it has shown silently has taken
    #: What another run of it has shown, by the written stops that it looked at and the rounds.
    severed: dict[tuple[frozenset[tuple[str, int]], int], tuple[SeveredValue, ...]] = field(
        default_factory=dict
    )
    not_run_again: bool = False  #: though what it has shown silently asked for it

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Counts the time that a finding takes: all of a cell's share its budget."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.tried += time.monotonic() - started

    def options(self, settings: Options) -> Options:
        """The settings, with what the cell's own check asked for."""
        if self.check is None:
            return settings
        choice = self.check.choice
        return replace(
            settings,
            verify=settings.verify if choice.verify is None else choice.verify,
            budget=choice.budget or settings.budget,
            language=choice.language or settings.language,
        )
