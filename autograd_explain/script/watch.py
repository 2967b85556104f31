"""What a program outside a notebook does wrong, told on its standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from ..incident import Incident, LiveFrame, running
from ..intercept import guard
from ..intercept.apart import Apart
from ..intercept.cell_run import CellRun
from ..intercept.cells import Run
from ..intercept.explainer import Explainer
from ..intercept.screen import line
from ..intercept.warned import WarningHook
from ..intercept.watched_cell import WatchedCell, WatchOptions
from ..isolation.generators import kept
from ..program import Program
from ..settings import AutogradExplain, Options

if TYPE_CHECKING:
    from ..render.explanation import Explanation


def show(explanation: Explanation) -> None:
    """Under the traceback, on the same stream."""
    with guard.guarded("show"):
        sys.stdout.flush()
        explanation.print(sys.stderr)


class Watch:
    """Explains what a program raises, warns of or, where it is recorded, does wrong silently."""

    def __init__(
        self,
        program: Program,
        explain: Callable[..., Explanation | None],
        recognise: Callable[[Incident, Options], bool],
        settings: AutogradExplain,
        tell: Callable[[Explanation], None] = show,
        untried: str = "verify_off_outside",
    ) -> None:
        """`tell` gets each explanation as it is found.  `untried` is why no rewrite is tried
        where the settings say so, a key of `render.reasons`."""
        self.found: list[Explanation] = []
        self._tell_one = tell
        self._untried = untried
        self._settings = settings
        self._apart = Apart()
        self._visit = CellRun(Run(0, "", ""), 0)
        # Where a notebook has its shell and its cells.
        names = SimpleNamespace(user_ns=program.names)
        self._explainer = Explainer(
            names, _Files(program), settings, explain, recognise, self._apart
        )
        self._program = program

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record while the body runs, from a state to which it can be put back."""
        check = WatchedCell(
            WatchOptions(untried=self._untried), SimpleNamespace(user_ns=self._program.names)
        )
        self._visit.check = check
        check.enter(self._program, None, None)
        if self._settings.verify:
            check.take_checkpoint()
        try:
            yield
        finally:
            check.leave()

    def try_from_here(
        self, names: dict[str, Any], again: Callable[[Mapping[str, str]], str]
    ) -> None:
        """Have rewrites tried from the state as it is now, by what `again` runs; as in `RunAgain`
        of `verification`."""
        check = self._visit.check
        if check is not None:
            self._settings.verify = check.take_checkpoint_inside(names, again)

    @contextmanager
    def warnings(self) -> Iterator[None]:
        """Look at the warnings that the body gives; what they mean is told at the end."""
        hook = WarningHook(self._warned)
        try:
            yield
        finally:
            hook.remove()

    def failed(self, error: BaseException) -> None:
        """Tell what the program raised, or the error behind it."""
        with kept(), self._apart:
            self._tell(self._explainer.error(error, self._visit), failed=True)

    def ended(self) -> None:
        """Tell what went wrong without an error."""
        with kept(), self._apart:
            check = self._visit.check
            signals = None if check is None else check.signals()
            alarms: list[Explanation] = []
            if check is not None and signals is not None:
                suspected = (*signals[0], *check.suspicions())
                alarms = self._explainer.signals(self._visit, suspected)
                alarms = self._explainer.told_once(self._visit, alarms)
            if self._visit.not_run_again and not alarms:
                guard.remark(line("limit_not_run_again", self._settings.language))
            for found in alarms:  # before what torch itself has warned of: that is seen last
                self._show(found)
            self._tell(None, failed=False)

    def close(self) -> None:
        """Everything is told."""
        if self._visit.check is not None:
            self._visit.check.discard()
        guard.tell(self._settings.language, outside=True)

    def _warned(self, text: str, frame: FrameType) -> None:
        with kept(), self._apart, guard.guarded("explain a warning"):
            self._explainer.warning(text, frame, self._visit)

    def _tell(self, failure: Explanation | None, *, failed: bool) -> None:
        for found in self._explainer.settle_warnings(self._visit, failure, failed=failed):
            self._show(found)

    def _show(self, found: Explanation) -> None:
        self.found.append(found)
        self._tell_one(found)


class _Files:
    """The sources of a program that has no cells."""

    runs: tuple[Run, ...] = ()

    def __init__(self, program: Program) -> None:
        self._program = program

    def settled(self, frames: Iterable[LiveFrame]) -> tuple[Program, tuple[LiveFrame, ...]]:
        frames = tuple(frames)
        return self._program.at(*running(frames)), frames
