"""The recorder, on for some steps of a training loop that a library runs."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..render.explanation import Explanation
    from ..script.watch import Watch


class RecordedSteps:
    """Records `steps` steps from the step `first` (0) on; tells on standard error what they showed.

    What the loop raises meanwhile is explained with what was observed, and faults that raise
    nothing are told when the last of these steps has ended.  No rewrite is tried.  `found` are the
    explanations so far.  Raises ValueError where there is nothing to record.
    """

    def __init__(self, steps: int, first: int = 0) -> None:
        if steps < 1 or first < 0:
            raise ValueError(f"steps must be 1 or more and first 0 or more, not {steps}, {first}")
        self.found: list[Explanation] = []
        self._first, self._last = first, first + steps
        self._begun = 0
        self._watch: Watch | None = None
        self._stack = ExitStack()

    def begin(self) -> None:
        """A step begins."""
        if self._begun == self._first and self._watch is None:
            self._watch = _new_watch()
            self._stack.callback(self._watch.close)
            self._stack.enter_context(self._watch.warnings())
            self._stack.enter_context(self._watch.recording())
        self._begun += 1

    def end(self) -> None:
        """A step has ended."""
        if self._begun >= self._last:
            self.close()

    def failed(self, error: BaseException) -> None:
        """The loop has raised."""
        watch, self._watch = self._watch, None
        if watch is not None:
            if isinstance(error, Exception):
                watch.failed(error)
            self._leave(watch)

    def close(self) -> None:
        """The loop has ended, or the last of the steps."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.ended()
            self._leave(watch)

    def _leave(self, watch: Watch) -> None:
        self._stack.close()
        self.found += watch.found


def _new_watch() -> Watch:
    """Records the program that runs as `__main__`."""
    from .. import _explain_incident, _is_recognised
    from ..program import Program
    from ..script.watch import Watch
    from ..settings import AutogradExplain

    main = vars(sys.modules["__main__"])
    file = main.get("__file__")
    source = Program().source(file) if isinstance(file, str) else None
    program = Program(() if source is None else [source], main)
    settings = AutogradExplain(verify=False, record_next_run=False)
    known = _explain_incident, _is_recognised
    return Watch(program, *known, settings, untried="not_checked_outside")
