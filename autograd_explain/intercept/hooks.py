"""The session: what is registered with IPython while the extension is loaded."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..incident import Incident, frames_of
from ..model import Kind, Place, Reason
from ..settings import AutogradExplain, Options
from . import guard, screen, transform
from .cells import Cells, Run
from .check import Check, Choice
from .plain import chain_of
from .warned import WarningHook, evidence_of, stack_of

if TYPE_CHECKING:
    from ..render.explanation import Explanation

#: `pipeline.explain_incident`, given from outside: the pipeline stands above this stage.
Explain = Callable[..., "Explanation | None"]

_MAX_WARNINGS = 3  #: explained per cell
_SAME_CELL = 0.8  #: how alike two texts are that count as one cell, where cells have no id


@dataclass
class Visit:
    """What is noted between the beginning and the end of a cell."""

    run: Run
    error_before: int
    warnings: list[Explanation] = field(default_factory=list)
    warned: set[tuple[str, Place | None]] = field(default_factory=set)
    check: Check | None = None


class Session:
    """Watches one shell.  `last` is the latest Explanation: data, no tensor, no frame."""

    def __init__(self, shell: Any, explain: Explain) -> None:
        self.shell = shell
        self.settings = AutogradExplain(parent=shell)
        self.cells = Cells(shell)
        self.last: Explanation | None = None
        self.watch_all: Choice | None = None
        self.recording: Any = None
        self._explain = explain
        self._visits: dict[int, Visit] = {}
        self._failed_unwatched: Run | None = None
        self._error_at_load = id(getattr(sys, "last_value", None))
        self._warning_hook: WarningHook | None = None

    # Loading and unloading

    def install(self) -> None:
        self.shell.configurables.append(self.settings)
        self.shell.events.register("pre_run_cell", self._before)
        self.shell.events.register("post_run_cell", self._after)
        transform.install(self.shell)
        self._warning_hook = WarningHook(self._on_warning)

    def remove(self) -> None:
        for visit in self._visits.values():
            self._leave(visit)
        self._visits.clear()
        for event, callback in (("pre_run_cell", self._before), ("post_run_cell", self._after)):
            self.shell.events.unregister(event, callback)
        transform.remove(self.shell)
        if self.settings in self.shell.configurables:
            self.shell.configurables.remove(self.settings)
        if self._warning_hook is not None:
            self._warning_hook.remove()

    # A cell's beginning and end

    def _before(self, info: Any) -> None:
        with guard.guarded("before the cell"):
            outer = self.cells.running
            run = self.cells.start(info)
            if run is None or outer is not None:
                return  # a cell run by a cell magic belongs to the cell that the user typed
            visit = Visit(run, id(getattr(sys, "last_value", None)))
            self._visits[id(run)] = visit
            choice = self._choice_for(run)
            if choice is not None:
                self._watch(visit, choice)

    def _after(self, result: Any) -> None:
        try:
            with guard.guarded("after the cell"):
                run = self.cells.finish(result)
                if run is not None and self.cells.running is None:
                    self._finish(run, result)
        except KeyboardInterrupt:
            # IPython would show a second traceback; the user wants the prompt back.
            print("autograd_explain: interrupted", file=sys.stderr)
        guard.tell()

    def _finish(self, run: Run, result: Any) -> None:
        visit = self._visits.pop(id(run), None) or Visit(run, self._error_at_load)
        self._leave(visit)
        for explanation in visit.warnings:
            self._show(explanation)
        error = self._error_of(result, visit)
        if error is not None:
            self._on_error(error, visit)
        elif visit.check is not None:
            self._on_success(visit)

    def _error_of(self, result: Any, visit: Visit) -> BaseException | None:
        """What the cell raised, or showed without raising it (%run, %%capture, 7.34's %%time)."""
        error = getattr(result, "error_in_exec", None)
        shown = getattr(sys, "last_value", None)
        if error is None and shown is not None and id(shown) != visit.error_before:
            error = shown
        return error if isinstance(error, Exception) else None

    # What becomes an incident

    def _on_error(self, error: BaseException, visit: Visit) -> None:
        options = self.options(visit)
        if not options.enabled or "torch" not in sys.modules:
            return
        explanation = None
        for cause in chain_of(error):
            incident = self._incident(Kind.ERROR, str(cause), visit, exception=cause)
            explanation = self._explained(incident, options, self._notes(visit, options))
            if explanation is not None:
                self._show(explanation)
                break
        if explanation is not None and visit.check is None and options.record_next_run:
            self._failed_unwatched = visit.run

    def _on_success(self, visit: Visit) -> None:
        options = self.options(visit)
        recording = visit.check.recording if visit.check is not None else None
        if recording is None:
            return
        found = False
        for signal in recording.signals():
            evidence = {**signal.evidence, "moments": signal.moments}
            incident = self._incident(Kind.SILENT, "", visit, signal=signal.name, evidence=evidence)
            explanation = self._explained(incident, options)
            if explanation is not None:
                found = True
                self._show(explanation)
        if not found and visit.check is not None and not visit.check.choice.automatic:
            screen.show_line("nothing_wrong", options.language)

    def _on_warning(self, text: str, filename: str, frame: FrameType) -> None:
        """Diagnose at once, while the frame is live; shown when the cell has ended."""
        run = self.cells.running
        visit = next(iter(self._visits.values()), None)
        if run is None or visit is None or "torch" not in sys.modules:
            return
        if "tensor" not in text.lower() or len(visit.warnings) >= _MAX_WARNINGS:
            return
        hook = self._warning_hook
        assert hook is not None
        hook.quiet = True
        try:
            with guard.guarded("warning"):
                self._diagnose_warning(text, filename, frame, visit)
        finally:
            hook.quiet = False

    def _diagnose_warning(self, text: str, filename: str, frame: FrameType, visit: Visit) -> None:
        program = self.cells.program()
        source = program.source(filename)
        if source is None:
            return  # raised in a library: not the user's line
        place = program.place(filename, frame.f_lineno)
        options = self.options(visit)
        if (text, place) in visit.warned or not options.enabled:
            return
        visit.warned.add((text, place))
        incident = Incident(
            Kind.WARNING,
            text,
            program,
            self.shell.user_ns,
            stack_of(frame),
            cell=visit.run.number,
            evidence=evidence_of(frame, source),
            recording=self._recording(visit),
        )
        explanation = self._explained(incident, options)
        if explanation is not None:
            visit.warnings.append(explanation)

    def _incident(
        self,
        kind: Kind,
        message: str,
        visit: Visit,
        exception: BaseException | None = None,
        **more: Any,
    ) -> Incident:
        return Incident(
            kind,
            message,
            self.cells.program(),
            self.shell.user_ns,
            frames_of(exception.__traceback__) if exception is not None else (),
            exception=exception,
            cell=visit.run.number,
            recording=self._recording(visit),
            **more,
        )

    def _explained(
        self, incident: Incident, options: Options, notes: tuple[Reason, ...] = ()
    ) -> Explanation | None:
        with guard.guarded("explain"):
            return self._explain(incident, options, notes=notes)
        return None

    def explain(self, error: BaseException) -> Explanation | None:
        """Explain an exception that the user hands over; shows nothing."""
        run = self.cells.running
        for cause in chain_of(error):
            incident = Incident(
                Kind.ERROR,
                str(cause),
                self.cells.program(),
                self.shell.user_ns,
                frames_of(cause.__traceback__),
                exception=cause,
                cell=None if run is None else run.number,
            )
            found = self._explain(incident, self.settings.options())
            if found is not None:
                self.last = found
                return found
        return None

    # Watching

    def watch_this_cell(self, choice: Choice) -> None:
        """From here to the end of the running cell."""
        run = self.cells.running
        visit = next(iter(self._visits.values()), None)
        if run is not None and visit is None:
            visit = self._visits[id(run)] = Visit(run, self._error_at_load)
        if visit is None:
            return
        if visit.check is None:
            self._watch(visit, choice)
        else:
            visit.check.choice = choice

    def _choice_for(self, run: Run) -> Choice | None:
        failed = self._failed_unwatched
        if self.watch_all is not None:
            return self.watch_all
        if failed is not None and same_cell(run, failed):
            self._failed_unwatched = None
            if self.settings.record_next_run and self.settings.enabled:
                return Choice(automatic=True)
        return None

    def _watch(self, visit: Visit, choice: Choice) -> None:
        visit.check = Check(choice)
        visit.check.enter(self.cells.program(), visit.run.number, self.recording)
        self.recording = visit.check.recording or self.recording

    def _leave(self, visit: Visit) -> None:
        if visit.check is not None:
            visit.check.leave()

    def _recording(self, visit: Visit) -> Any:
        return None if visit.check is None else visit.check.recording

    # Settings and screen

    def options(self, visit: Visit | None = None) -> Options:
        """The settings, with what the cell's own check asked for."""
        options = self.settings.options()
        choice = visit.check.choice if visit is not None and visit.check is not None else None
        if choice is None:
            return options
        return replace(
            options,
            verify=options.verify if choice.verify is None else choice.verify,
            budget=choice.budget or options.budget,
            language=choice.language or options.language,
        )

    def _notes(self, visit: Visit, options: Options) -> tuple[Reason, ...]:
        if visit.check is None and options.record_next_run:
            return (Reason("recorded_next"),)
        return ()

    def _show(self, explanation: Explanation) -> None:
        self.last = explanation
        with guard.guarded("show"):
            screen.show(self.shell, explanation)


def same_cell(run: Run, other: Run) -> bool:
    """Whether two runs are of one cell, which the user may have edited in between."""
    if run.cell_id is not None and other.cell_id is not None:
        return run.cell_id == other.cell_id
    if run.text.strip() == other.text.strip():
        return True
    return difflib.SequenceMatcher(None, run.text, other.text).quick_ratio() >= _SAME_CELL
