"""The session: what is registered with IPython while the extension is loaded."""

from __future__ import annotations

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
        self.last_cell: int | None = None
        self.watch_all: Choice | None = None
        self.recording: Any = None
        self._explain = explain
        self._visits: dict[int, Visit] = {}
        self._watch_next: Run | None = None
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
            screen.show_line("interrupted", self.settings.language)
        guard.tell(self.settings.language)

    def _finish(self, run: Run, result: Any) -> None:
        visit = self._visits.pop(id(run), None) or Visit(run, self._error_at_load)
        try:
            self._leave(visit)
            error = self._error_of(result, visit)
            if error is not None:
                run.success = False
            self._tell(visit, error)
        finally:
            if visit.check is not None:
                visit.check.discard()

    def _tell(self, visit: Visit, error: BaseException | None) -> None:
        for explanation in visit.warnings:
            self._show(explanation, visit)
        if isinstance(error, Exception):
            self._on_error(error, visit)
        elif error is None and visit.check is not None:
            self._on_success(visit, visit.check)

    def _error_of(self, result: Any, visit: Visit) -> BaseException | None:
        """What the cell raised, or showed without raising it (%run, %%capture, 7.34's %%time)."""
        error: BaseException | None = getattr(result, "error_in_exec", None)
        shown = getattr(sys, "last_value", None)
        if error is None and isinstance(shown, BaseException) and id(shown) != visit.error_before:
            error = shown
        return error or getattr(result, "error_before_exec", None)

    # What becomes an incident

    def _on_error(self, error: BaseException, visit: Visit) -> None:
        options = self.options(visit)
        if not options.enabled or "torch" not in sys.modules:
            return
        for cause in chain_of(error):
            incident = self._incident(Kind.ERROR, str(cause), visit, exception=cause)
            explanation = self._explained(incident, visit, self._notes(visit, options))
            if explanation is not None:
                self._show(explanation, visit)
                if visit.check is None or visit.check.choice.automatic:
                    self._watch_next = visit.run
                return

    def _on_success(self, visit: Visit, check: Check) -> None:
        options = self.options(visit)
        found = False
        for signal in check.signals():
            evidence = {**signal.evidence, "moments": signal.moments}
            incident = self._incident(Kind.SILENT, "", visit, signal=signal.name, evidence=evidence)
            explanation = self._explained(incident, visit, check.notes())
            if explanation is not None:
                found = True
                self._show(explanation, visit)
        if not found and check.recording is not None and not check.choice.automatic:
            screen.show_line("nothing_wrong", options.language)

    def _on_warning(self, text: str, frame: FrameType) -> None:
        """Diagnose at once, while the frame is live; shown when the cell has ended."""
        outermost = self.cells.outermost
        visit = self._visits.get(id(outermost)) if outermost is not None else None
        if visit is None or "torch" not in sys.modules or "tensor" not in text.lower():
            return
        if len(visit.warnings) < _MAX_WARNINGS and self._warning_hook is not None:
            with self._warning_hook.silence(), guard.guarded("warning"):
                self._diagnose_warning(text, frame, visit)

    def _diagnose_warning(self, text: str, frame: FrameType, visit: Visit) -> None:
        program, frames = self.cells.settled(stack_of(frame))
        source = program.source(frames[-1].filename) if frames else None
        place = source.place(frame.f_lineno) if source is not None else None
        if source is None or (text, place) in visit.warned or not self.settings.enabled:
            return  # without a source it was raised in a library: not the user's line
        visit.warned.add((text, place))
        incident = Incident(
            Kind.WARNING,
            text,
            program,
            self.shell.user_ns,
            frames,
            cell=visit.run.number,
            evidence=evidence_of(frame, source),
            recording=None if visit.check is None else visit.check.recording,
        )
        explanation = self._explained(incident, visit)
        if explanation is not None:
            visit.warnings.append(explanation)

    def _incident(
        self,
        kind: Kind,
        message: str,
        visit: Visit | None = None,
        exception: BaseException | None = None,
        **more: Any,
    ) -> Incident:
        raised = frames_of(exception.__traceback__) if exception is not None else ()
        program, frames = self.cells.settled(raised)
        return Incident(
            kind,
            message,
            program,
            self.shell.user_ns,
            frames,
            exception=exception,
            cell=None if visit is None else visit.run.number,
            recording=None if visit is None or visit.check is None else visit.check.recording,
            **more,
        )

    def _explained(
        self, incident: Incident, visit: Visit, notes: tuple[Reason, ...] = ()
    ) -> Explanation | None:
        options = self.options(visit)
        check = visit.check
        # Trying rewrites in the middle of the user's cell would stop it for seconds.
        late = check is not None and incident.kind is not Kind.WARNING
        with guard.guarded("explain"):
            verifier = check.verifier(options, self.cells.runs) if check and late else None
            return self._explain(incident, options, verifier=verifier, notes=notes)
        return None

    def explain(self, error: BaseException) -> Explanation | None:
        """Explain an exception that the user hands over; shows nothing."""
        outermost = self.cells.outermost
        visit = self._visits.get(id(outermost)) if outermost is not None else None
        for cause in chain_of(error):
            incident = self._incident(Kind.ERROR, str(cause), visit, exception=cause)
            found = self._explain(incident, self.options(visit))
            if found is not None:
                self.last, self.last_cell = found, incident.cell
                return found
        return None

    # Watching

    def watch_this_cell(self, choice: Choice) -> None:
        """From here to the end of the running cell."""
        outermost = self.cells.outermost
        if outermost is None:
            return
        visit = self._visits.setdefault(id(outermost), Visit(outermost, self._error_at_load))
        if visit.check is None:
            self._watch(visit, choice)
        else:
            visit.check.choice = choice

    def _choice_for(self, run: Run) -> Choice | None:
        failed = self._watch_next
        again = failed is not None and same_cell(run, failed)
        if again:
            self._watch_next = None
        if self.watch_all is not None:
            return self.watch_all
        wanted = self.settings.record_next_run and self.settings.enabled
        return Choice(automatic=True) if again and wanted else None

    def _watch(self, visit: Visit, choice: Choice) -> None:
        visit.check = check = Check(choice, self.shell)
        if self.options(visit).verify:
            check.take_checkpoint()
        check.enter(self.cells.program(), visit.run.number, self.recording)
        self.recording = check.recording or self.recording

    def _leave(self, visit: Visit) -> None:
        if visit.check is not None:
            visit.check.leave()

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
        if visit.check is not None:
            return visit.check.notes()
        return (Reason("recorded_next"),) if options.record_next_run else ()

    def _show(self, explanation: Explanation, visit: Visit) -> None:
        self.last, self.last_cell = explanation, visit.run.number
        with guard.guarded("show"):
            screen.show(self.shell, explanation)


def same_cell(run: Run, other: Run) -> bool:
    """Whether two runs are of one cell, which the user may have edited in between."""
    if run.cell_id is not None and other.cell_id is not None:
        return run.cell_id == other.cell_id
    if run.text.strip() == other.text.strip():
        return True
    import difflib

    return difflib.SequenceMatcher(None, run.text, other.text).quick_ratio() >= _SAME_CELL
