"""From an error, a warning or a signal of the recorder to an Incident, and to its explanation.

Incidents hold live objects: each lives inside one of these methods and no longer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

from ..incident import Incident, LiveFrame, chain_of, frames_of
from ..isolation.type_checks import message_of, traceback_of
from ..model import Event, Finding, Kind, LineId, Outcome, Place, Reason, What
from ..program import Program
from ..settings import ALWAYS, AutogradExplain, Options
from .apart import Apart
from .cell_run import CellRun, Warned
from .cells import Run
from .crossed import Crossed, asking, crossed, incident_of
from .guard import guarded
from .number_cut import in_the_loss, is_lost, is_number_cut
from .progress import BEING_TRIED, Progress
from .verification import (
    AwaitedVerification,
    DeferredVerification,
    LaterVerification,
    Untried,
    Verifier,
    is_quick,
)
from .warned import caused_by, evidence_of, is_about_users, stack_of

if TYPE_CHECKING:
    from ..record import Signal
    from ..render.explanation import Explanation
    from ..verification import SeveredValue

#: `pipeline.explain_incident`, given from outside: the pipeline stands above this stage.
Explain = Callable[..., "Explanation | None"]
#: `pipeline.is_recognised`, from outside as well.
Recognise = Callable[[Incident, Options], bool]

#: What keeps proposals for a later moment.
Postponed = AwaitedVerification | DeferredVerification | LaterVerification

_MAX_WARNINGS = 3  #: explained per cell


class Sources(Protocol):
    """Where a program's text is kept (`cells.Cells`)."""

    @property
    def runs(self) -> Sequence[Run]: ...

    def settled(self, frames: Iterable[LiveFrame]) -> tuple[Program, tuple[LiveFrame, ...]]:
        """The program, and the frames with file names that belong to one source each."""
        ...


class Explainer:
    """Asks the pipeline on behalf of one shell; what it gives back is data."""

    def __init__(
        self,
        shell: Any,
        cells: Sources,
        settings: AutogradExplain,
        explain: Explain,
        recognise: Recognise,
        apart: Apart,
    ) -> None:
        self.explain = explain
        self._recognise = recognise
        self._apart = apart
        self._shell = shell
        self._cells = cells
        self._settings = settings

    def error(
        self, error: BaseException, visit: CellRun, progress: Progress | None = None
    ) -> Explanation | None:
        """The explanation of what a cell raised, or of the error behind it.

        `progress` shows it before its rewrites are tried.
        """
        if not self._wanted():
            return None
        for cause in chain_of(error):
            with guarded("explain"):
                apart = crossed(cause)
                if apart is not None:
                    return self._crossed(apart, visit)
                incident = self._incident(Kind.ERROR, message_of(cause), visit, exception=cause)
                verifier = self._verifier(visit) or self._later(visit, incident.program)
                if isinstance(verifier, Verifier):
                    incident = replace(incident, evidence=verifier.evidence_of(incident))
                if progress is not None and isinstance(verifier, Verifier):
                    found = self._awaited(incident, visit, verifier, progress)
                else:
                    found = self._ask(incident, visit, verifier, self._notes(visit))
                if found is not None:
                    visit.later = verifier if isinstance(verifier, LaterVerification) else None
                    return found
        return None

    def _awaited(
        self, incident: Incident, visit: CellRun, verifier: Verifier, progress: Progress
    ) -> Explanation | None:
        """The explanation with what trying its rewrites shows, and before that without."""
        why = Reason(BEING_TRIED, {"seconds": f"{verifier.seconds:.3g}"})
        awaited = AwaitedVerification(why)
        found = self._ask(incident, visit, awaited, self._notes(visit))
        if found is None or not awaited.asked:
            return found
        progress.begin(found)
        rewrites = tuple(replace(r, reason=Reason("crashed")) for r in found.diagnosis.rewrites)
        try:
            with guarded("verify"), _unobserved():
                rewrites = awaited.settle(verifier.telling(progress))
        except KeyboardInterrupt:  # ends the trying; the report stays
            rewrites = progress.so_far()
        return replace(found, diagnosis=replace(found.diagnosis, rewrites=rewrites))

    def recognises(self, error: BaseException, visit: CellRun | None) -> bool:
        """Whether what a cell raised, or the error behind it, will be explained."""
        options = self._settings.options()
        return self._wanted() and any(
            self._recognise(self._incident(Kind.ERROR, message_of(e), visit, exception=e), options)
            for e in chain_of(error)
        )

    def _crossed(self, apart: Crossed, visit: CellRun | None) -> Explanation | None:
        """The explanation of what another process raised."""
        options = self._settings.options()
        options = options if visit is None else visit.options(options)
        program, _ = self._cells.settled(())
        program, frames = self._cells.settled(apart.frames(program))
        cell = None if visit is None else visit.run.number or None
        asked = incident_of(apart, program, self._shell.user_ns, frames, options, cell)
        return self.explain(asked, options, **asking(apart, asked))

    def by_hand(self, error: BaseException, visit: CellRun | None) -> Explanation | None:
        """The explanation of an exception that the user hands over."""
        for cause in chain_of(error):
            apart = crossed(cause)
            if apart is not None:
                return self._crossed(apart, visit)
            incident = self._incident(Kind.ERROR, message_of(cause), visit, exception=cause)
            watched = visit is not None and visit.check is not None
            untried = Untried("caught") if watched else None
            found = self.explain(incident, self._settings.options(), verifier=untried)
            if found is not None:
                return found
        return None

    def signals(self, visit: CellRun, signals: Sequence[Signal]) -> list[Explanation]:
        """What went wrong without an exception."""
        of = range(len(signals), 0, -1)
        found = [self._signal(s, visit, of=n) for s, n in zip(signals, of, strict=True)]
        return list(filter(None, found))

    def decided(
        self, visit: CellRun, doubtful: Iterable[Signal]
    ) -> tuple[tuple[Signal, ...], tuple[Signal, ...]]:
        """Of what the program may well mean, that which another run of the cell shows to be in the
        way of a loss, and the rest."""
        found: tuple[list[Signal], list[Signal]] = [], []
        for signal in doubtful:
            shown = is_number_cut(signal) and self._loses(visit, signal)
            found[not shown].append(in_the_loss(signal) if shown else signal)
        return tuple(found[0]), tuple(found[1])

    def _loses(self, visit: CellRun, signal: Signal) -> bool:
        """Whether a loss depends on a number of which its gradient knows nothing."""
        verifier = self._verifier(visit)
        with guarded("severed"), visit.trying():
            if isinstance(verifier, Verifier):
                incident = self._incident(
                    Kind.SILENT, "", visit, signal=signal.name, evidence=signal.evidence
                )
                return is_lost(signal, _severed(visit, verifier, incident), incident.program)
        return False

    def doubts(self, visit: CellRun, signals: Iterable[Signal]) -> list[Explanation]:
        """What may have gone wrong, and the program may well mean: nothing is searched for that.
        What happened in a call of which torch has warned is told by that warning."""
        warned = {_line(w.explanation.diagnosis.finding.event(What.CAUSE)) for w in visit.warnings}
        others = [s for s in signals if not _lines_of(s) & warned]
        found = [self._signal(s, visit, search=False) for s in others]
        return [explanation.as_note() for explanation in found if explanation is not None]

    def _signal(
        self, signal: Signal, visit: CellRun, *, of: int = 1, search: bool = True
    ) -> Explanation | None:
        """What is told of a finding, the next `of` so many that share the cell's time."""
        with guarded("explain"), visit.trying():
            evidence = {**signal.evidence, "moments": signal.moments}
            verifier = self._verifier(visit, of)
            incident = self._incident(Kind.SILENT, "", visit, signal=signal.name, evidence=evidence)
            if isinstance(verifier, Verifier):
                verifier = verifier if search else verifier.of_proposals()
                shown = _shown_by_running(visit, verifier, incident, signal)
                incident = replace(incident, evidence={**evidence, **shown})
            notes = () if visit.check is None else visit.check.notes()
            found = self._ask(incident, visit, verifier, notes)
            return found if found is None or _is_shown(found, signal) else None
        return None

    def warning(self, text: str, frame: FrameType, visit: CellRun) -> None:
        """Diagnose while the frame is live; the answer waits in `visit` for the cell's end."""
        if not self._wanted() or len(visit.warnings) >= _MAX_WARNINGS:
            return
        program, frames = self._cells.settled(stack_of(frame))
        live = caused_by(text, frames, program)
        source = None if live is None else program.source_of(live.code)
        if live is None or source is None:
            return  # raised in a library: not the user's line
        own = live.frame is frame
        place = source.place(live.line)
        if (text, place) in visit.warned:
            return
        visit.warned.add((text, place))
        evidence = evidence_of(frame, source if own else None)
        if not own and not is_about_users(text, evidence, frames, program, self._shell.user_ns):
            return
        incident = Incident(
            Kind.WARNING,
            text,
            program,
            self._shell.user_ns,
            frames,
            cell=visit.run.number or None,
            evidence=evidence,
            recording=None if visit.check is None else visit.check.recording,
            patched=self._apart.patched,
        )
        # Trying rewrites here would stop the user's cell for seconds.
        postponed = None if visit.check is None else DeferredVerification()
        found = self._ask(incident, visit, postponed, ())
        if found is not None:
            visit.warnings.append(Warned(found, postponed))

    def tried(self, shown: Explanation, visit: CellRun) -> Explanation | None:
        """A report that was shown before its rewrites were tried, with what trying them has shown;
        None where it has shown nothing."""
        if visit.later is None:
            return None
        seconds = visit.options(self._settings.options()).budget
        with guarded("verify"):
            rewrites = visit.later.settle(Verifier(None, seconds, self._cells.runs))
            if any(rewrite.outcome is not Outcome.NOT_TRIED for rewrite in rewrites):
                return replace(shown, diagnosis=replace(shown.diagnosis, rewrites=rewrites))
        return None

    def told_once(self, visit: CellRun, alarms: list[Explanation]) -> list[Explanation]:
        """The alarms of a cell; one that blames a line of which torch has warned tells of both, as
        it has shown what comes of it.  Where it has nothing to offer, the warning alone is told.
        What one expression does to several parameters is told of the first."""
        found: list[Explanation] = []
        for alarm in alarms:
            blamed = _blamed(alarm)
            if blamed is not None and blamed in map(_blamed, found):
                continue
            same = [w for w in visit.warnings if _blames_alike(w.explanation, alarm)]
            if any(w.explanation.diagnosis.rewrites for w in same):
                if not alarm.diagnosis.rewrites:
                    continue
            visit.warnings = [w for w in visit.warnings if w not in same]
            told = alarm.diagnosis
            if same:
                told = replace(told, message=same[0].explanation.diagnosis.message)
            found.append(replace(alarm, diagnosis=told))
        return found

    def settle_warnings(
        self, visit: CellRun, failure: Explanation | None, *, failed: bool
    ) -> list[Explanation]:
        """The cell's warnings, and the failure that it ended in; one report where the one led to
        the other.  Where the cell ended well, the first warning's rewrites are tried now."""
        found = [warned.explanation for warned in visit.warnings]
        if failure is not None:
            return _one_for_each_failure(found, failure) if found else [failure]
        verifier = None if failed else self._verifier(visit)
        if verifier is not None and found and visit.warnings[0].postponed is not None:
            with guarded("verify"):
                rewrites = visit.warnings[0].postponed.settle(verifier)
                diagnosis = replace(found[0].diagnosis, rewrites=rewrites)
                found[0] = replace(found[0], diagnosis=diagnosis)
        return found

    def _wanted(self) -> bool:
        return self._settings.enabled and "torch" in sys.modules

    def _ask(
        self,
        incident: Incident,
        visit: CellRun,
        verifier: Verifier | Untried | Postponed | None,
        notes: tuple[Reason, ...],
    ) -> Explanation | None:
        options = visit.options(self._settings.options())
        return self.explain(incident, options, verifier=verifier, notes=notes)

    def _verifier(self, visit: CellRun, of: int = 1) -> Verifier | Untried | None:
        """What tries rewrites, in the time that is left to the cell; the next one `of` so many."""
        if visit.check is None:
            return None
        options = visit.options(self._settings.options())
        left = max(0.0, options.budget - visit.tried)
        return visit.check.verifier(replace(options, budget=left), self._cells.runs, of)

    def _later(self, visit: CellRun, program: Program) -> LaterVerification | None:
        """Where a failure that was not watched is to be tried after its report."""
        options = visit.options(self._settings.options())
        if options.verify != ALWAYS or not visit.run.number:
            return None
        quick = is_quick(program, self._cells.runs, options.budget)
        return LaterVerification() if quick else None

    def _notes(self, visit: CellRun) -> tuple[Reason, ...]:
        if visit.check is not None:
            return visit.check.notes()
        return (Reason("recorded_next"),) if self._settings.record_next_run else ()

    def _incident(
        self,
        kind: Kind,
        message: str,
        visit: CellRun | None,
        exception: BaseException | None = None,
        **more: Any,
    ) -> Incident:
        raised = frames_of(traceback_of(exception)) if exception is not None else ()
        program, frames = self._cells.settled(raised)
        if visit is not None and visit.run.earlier:
            program = program.until(visit.run.number)
        return Incident(
            kind,
            message,
            program,
            self._shell.user_ns,
            frames,
            exception=exception,
            cell=None if visit is None else visit.run.number or None,
            recording=None if visit is None or visit.check is None else visit.check.recording,
            patched=self._apart.patched,
            **more,
        )


def _severed(visit: CellRun, verifier: Verifier, incident: Incident) -> tuple[SeveredValue, ...]:
    """Run once for all that is asked of a cell; once more where there are written stops to look
    at."""
    stops = incident.evidence.get("stops", frozenset())
    rounds = incident.evidence.get("rounds", 0)
    for (looked_at, ran), found in visit.severed.items():
        if looked_at == stops and ran >= rounds:
            return found
    answer = verifier.severed_values(incident)
    visit.not_run_again |= answer is None
    found = visit.severed[stops, rounds] = answer or ()
    return found


def _shown_by_running(
    visit: CellRun, verifier: Verifier, incident: Incident, signal: Signal
) -> dict[str, Any]:
    """What running the cell again, in another process, tells of a silent finding."""
    if "changed" in signal.moments:
        return {"gradients": verifier.differences(incident) or ()}
    if signal.name == "hook-registered-again":
        return {"gradients": verifier.differences(incident)}
    if signal.name == "nonfinite-gradient":
        return {"origin": verifier.origin_of_nonfinite(incident)}
    if signal.name in ("partial-cut", "cancelled-difference"):
        return {"severed": _severed(visit, verifier, incident)}
    if signal.name == "gradient-ignored":
        answer = verifier.ignored_gradients(incident)
        visit.not_run_again |= answer is None
        return {"ignored": answer or ()}
    return {}


@contextmanager
def _unobserved() -> Iterator[None]:
    """Function modes, the recorder's or the user's, have no part in it."""
    import torch

    with torch._C.DisableTorchFunction():
        yield


def _one_for_each_failure(warned: list[Explanation], failure: Explanation) -> list[Explanation]:
    """A warning that the failing line gave, or that blames what the failure blames, is told once:
    by the failure's report, whose rewrites were tried, if that is as sure as the warning's."""
    about = failure.diagnosis.finding
    same = [w for w in warned if _is_of_one_failure(w.diagnosis.finding, about)]
    surer = [w for w in same if w.diagnosis.finding.confidence > about.confidence]
    return [*(w for w in warned if w not in same), *(surer[-1:] or [failure])]


def _is_of_one_failure(warned: Finding, failed: Finding) -> bool:
    lines = [_line(f.event(What.FAILED)) for f in (warned, failed)]
    blamed = [
        (f.cause, _line(f.event(What.CAUSE) or f.event(What.CHANGED))) for f in (warned, failed)
    ]
    return (lines[0] is not None and lines[0] == lines[1]) or blamed[0] == blamed[1]


def _blames_alike(warned: Explanation, alarm: Explanation) -> bool:
    findings = warned.diagnosis.finding, alarm.diagnosis.finding
    first, second = (_line(f.event(What.CAUSE)) for f in findings)
    return first is not None and first == second


def _is_shown(found: Explanation, signal: Signal) -> bool:
    """What was frozen with a shallow copy may be shared on purpose; not where what was copied
    trains as soon as the copy has parameters of its own."""
    trained = (Outcome.RUNS, Outcome.VERIFIED)
    rewrites = found.diagnosis.rewrites
    return not signal.evidence.get("shallow") or any(r.outcome in trained for r in rewrites)


def _blamed(alarm: Explanation) -> tuple[str, Place] | None:
    """The cause, and the expression that is blamed."""
    finding = alarm.diagnosis.finding
    event = finding.event(What.CAUSE)
    place = None if event is None else event.place
    return None if place is None or place.span is None else (finding.cause, place)


def _lines_of(signal: Signal) -> set[LineId | None]:
    """The lines down to where values left the graph."""
    return {p.line_id for cut in signal.moments.get("cut", ()) for p in cut.path}


def _line(event: Event | None) -> LineId | None:
    place = None if event is None else event.place
    return None if place is None else place.line_id
