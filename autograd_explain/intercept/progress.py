"""The report of a failing cell while its rewrites are tried: at once, and updated in place.

A kernel's front end shows the report from the beginning and replaces it under its display id; a
terminal shows a line that goes away.  Neither starts a thread: the rewrites are tried in forks.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from IPython.display import DisplayHandle

from ..model import Outcome, Reason, Rewrite
from . import screen
from .guard import guarded

if TYPE_CHECKING:
    from ..render.explanation import Explanation
    from ..render.shown import Shown
    from ..verification.plan import Verdict

BEING_TRIED = "being_tried"
_SECONDS = 0.3  #: between two updates that prove nothing


class Progress(Protocol):
    """What is told while rewrites are tried.  `begun` says that the report's place is taken."""

    begun: bool

    def begin(self, explanation: Explanation) -> None:
        """The report without the outcomes."""

    def tried(self, verdict: Verdict) -> None:
        """One of its rewrites was tried."""

    def searched(self, verdict: Verdict) -> None:
        """Another edit was tried, none of the report's."""

    def so_far(self) -> tuple[Rewrite, ...]:
        """The rewrites as they stand: proven, or interrupted."""

    def finish(self, shown: Shown) -> None:
        """The report as it stays."""

    def abandon(self) -> None:
        """Nothing more comes."""


def progress_for(shell: Any, language: str) -> Progress | None:
    """None where nobody would see it: output that is neither a kernel's nor a terminal's."""
    if getattr(shell, "kernel", None) is not None:
        return KernelProgress()
    if bool(getattr(sys.stdout, "isatty", bool)()):
        return TerminalProgress(shell, language)
    return None


class _Account:
    """The report with what was proven of its rewrites so far."""

    def __init__(self) -> None:
        self.begun = False
        self._shown: Explanation | None = None

    def _begin(self, explanation: Explanation) -> None:
        self.begun, self._shown = True, explanation

    def _has_proven(self, verdict: Verdict) -> bool:
        rewrites = [] if self._shown is None else list(self._shown.diagnosis.rewrites)
        proven = verdict.outcome is Outcome.VERIFIED and 0 <= verdict.index < len(rewrites)
        if self._shown is not None and proven:
            rewrites[verdict.index] = replace(
                rewrites[verdict.index],
                outcome=verdict.outcome,
                reason=verdict.reason,
                comparison=verdict.comparison,
            )
            self._shown = _with_rewrites(self._shown, rewrites)
        return proven

    def so_far(self) -> tuple[Rewrite, ...]:
        return tuple(
            replace(r, reason=Reason("interrupted")) if r.reason.key == BEING_TRIED else r
            for r in (() if self._shown is None else self._shown.diagnosis.rewrites)
        )


class KernelProgress(_Account):
    """The panel, under a display id."""

    def __init__(self) -> None:
        super().__init__()
        self._handle: Any = None
        self._number = 0
        self._last = 0.0

    def begin(self, explanation: Explanation) -> None:
        self._begin(explanation)
        note = Reason("trying", {"count": str(len(explanation.diagnosis.rewrites))})
        with guarded("show"):
            shown = _with_note(explanation, note)
            # Before anything is shown: an interrupt may come while it is.
            self._handle = DisplayHandle()  # type: ignore[no-untyped-call]
            self._handle.display(shown)

    def tried(self, verdict: Verdict) -> None:
        if self._shown is None:
            return
        self._number += 1
        proven = self._has_proven(verdict)
        values = {"number": str(self._number), "count": str(len(self._shown.diagnosis.rewrites))}
        self._update(Reason("trying_on", values), at_once=proven)

    def searched(self, verdict: Verdict) -> None:
        self._number += 1
        self._update(Reason("searching", {"count": str(self._number)}))

    def finish(self, shown: Shown) -> None:
        self._put(shown)

    def abandon(self) -> None:
        if self._shown is not None:
            self._put(_with_rewrites(self._shown, self.so_far()))

    def _update(self, note: Reason, at_once: bool = False) -> None:
        now = time.monotonic()
        if self._shown is not None and (at_once or now - self._last > _SECONDS):
            self._last = now
            self._put(_with_note(self._shown, note))

    def _put(self, shown: Shown) -> None:
        with guarded("show"):
            self._handle.update(shown)


class TerminalProgress(_Account):
    """A line that stands while rewrites are tried."""

    def __init__(self, shell: Any, language: str) -> None:
        super().__init__()
        self._shell = shell
        self._language = language
        self._live: Any = None
        self._count = self._number = 0

    def begin(self, explanation: Explanation) -> None:
        self._begin(explanation)
        self._count = len(explanation.diagnosis.rewrites)
        with guarded("show"):
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                self._line("trying_line", count=self._count),
                console=Console(file=sys.stdout, force_jupyter=False),
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start(refresh=True)

    def tried(self, verdict: Verdict) -> None:
        self._number += 1
        self._has_proven(verdict)
        self._say("trying_line_on", number=self._number, count=self._count)

    def searched(self, verdict: Verdict) -> None:
        self._number += 1
        self._say("searching_line", count=self._number)

    def finish(self, shown: Shown) -> None:
        self.abandon()
        screen.show(self._shell, shown)

    def abandon(self) -> None:
        with guarded("show"):
            if self._live is not None:
                self._live.stop()

    def _say(self, key: str, **values: object) -> None:
        with guarded("show"):
            self._live.update(self._line(key, **values), refresh=True)

    def _line(self, key: str, **values: object) -> Any:
        from rich.text import Text

        return Text(screen.line(key, self._language, **values), "dim")


def _with_note(explanation: Explanation, note: Reason) -> Explanation:
    diagnosis = explanation.diagnosis
    return replace(explanation, diagnosis=replace(diagnosis, notes=(note, *diagnosis.notes)))


def _with_rewrites(explanation: Explanation, rewrites: Iterable[Rewrite]) -> Explanation:
    return replace(explanation, diagnosis=replace(explanation.diagnosis, rewrites=tuple(rewrites)))
