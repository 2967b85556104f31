"""The stages, called in order: match, inspect, rewrite, verify, render.

Nothing live outlives `explain_incident`: what it gives back is data.  A stage that fails is
noted and left out; what the others found is still told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING

from .incident import Incident, at_the_engine, backward_context
from .intercept.guard import guarded, note, remark
from .isolation.silence import silenced
from .knowledge.entry import Entry, entries, one_line, unusable
from .loaded import is_on_disk
from .match import Match, match_message
from .model import (
    Certainty,
    Confidence,
    Diagnosis,
    Event,
    Finding,
    GraphLine,
    Kind,
    Reason,
    Rewrite,
    What,
)
from .settings import Options, rank_of

if TYPE_CHECKING:
    from .inspect.dataflow import Slicer
    from .inspect.scene import Scene
    from .render.explanation import Explanation
    from .rewrite.engine.proposal import Proposal
    from .verification import Request

#: Tries proposals in another process; gives them back with outcomes, best first, or None where it
#: leaves that for later.
Verifier = Callable[[Incident, Finding, "tuple[Proposal, ...]"], "tuple[Rewrite, ...] | None"]

UNKNOWN = "unknown"


def explain_incident(
    incident: Incident,
    options: Options,
    *,
    verifier: Verifier | None = None,
    notes: tuple[Reason, ...] = (),
) -> Explanation | None:
    """What happened and what to do about it, or None where autograd has nothing to do with it."""
    causes = entries(options.causes)
    for line in unusable(options.causes):
        remark(line)
    match = recognise(incident, causes)
    if match is None:
        return None
    incident = at_the_engine(incident)
    with _unobserved():
        with silenced():  # the programs that are tried later may warn
            finding, graph = inspect(incident, match, candidates(match, causes))
            if finding.cause == UNKNOWN and incident.kind is not Kind.ERROR:
                return None
            general = bool(incident.likely) and not finding.facts
            proposals = () if general else propose(finding, incident, causes)
        rewrites = verify(incident, finding, proposals, verifier)
    notes = tuple(r for n in notes for r in _reachable(n, finding, incident.cell))
    told = finding.with_details(None)  # a report pickles where the cause's folder is unknown
    outside = not incident.program.is_notebook
    diagnosis = Diagnosis(
        incident.kind,
        incident.message,
        told,
        rewrites,
        notes,
        outside,
        graph,
        rank=rank_of(),
        signal=incident.signal,
    )
    return render(diagnosis, options, causes)


def is_recognised(incident: Incident, options: Options) -> bool:
    """Whether `explain_incident` would have something to say, found without looking further."""
    return recognise(incident, entries(options.causes)) is not None


def _reachable(note: Reason, finding: Finding, cell: int | None) -> tuple[Reason, ...]:
    """The note, in so far as it holds: that the cell's next run is recorded shows nothing of
    statements in earlier cells, and nothing new where all was observed; that a call in this process
    would tell more, where the text alone has told all."""
    if note.key == "called_here" and finding.confidence is not Confidence.GENERAL:
        return ()
    if note.key != "recorded_next":
        return (note,)
    placed = [e for e in finding.events if e.place is not None]
    if placed and all(e.certainty is Certainty.OBSERVED for e in placed):
        return ()
    places = [e.place for e in placed if e.place is not None and e.place.function is None]
    earlier = [p.cell for p in places if p.cell is not None and p.cell != cell]
    return (Reason("recorded_from", {"cell": f"In[{min(earlier)}]"}) if earlier else note,)


def recognise(incident: Incident, causes: Mapping[str, Entry]) -> Match | None:
    """The message or the recorder's signal as a match; None for anything foreign."""
    if incident.signal:
        captures = {k: v for k, v in incident.evidence.items() if isinstance(v, str)}
        return Match(incident.signal, captures, "", "", "")
    if _is_asserted(incident):
        return None
    place = incident.place
    return match_message(
        incident.message,
        _extra(causes),
        source="" if place is None else place.source,
        running=_running(incident),
    )


def _running(incident: Incident) -> str:
    """The custom Function's `backward`, or else the user's code, where it raised the error."""
    if backward_context(incident.frames) is not None:
        return "backward"
    return "<user>" if incident.frames[-1:] == incident.user_frames[-1:] != () else ""


def _is_asserted(incident: Incident) -> bool:
    """Whether an `assert` of the user's own raised it: its text may quote any message."""
    if not isinstance(incident.exception, AssertionError) or not incident.frames:
        return False
    return incident.program.source_of(incident.frames[-1].code) is not None


def candidates(match: Match, causes: Mapping[str, Entry]) -> tuple[Entry, ...]:
    """The causes that may explain the match."""
    ids = {match.pattern, *match.siblings}
    return tuple(e for e in _readable(causes.values()) if ids.intersection(e.patterns))


def inspect(
    incident: Incident, match: Match, causes: Iterable[Entry]
) -> tuple[Finding, tuple[GraphLine, ...]]:
    """What is found, and the part of the graph that it is about; the Scene ends here."""
    scene = _scene(incident, match)
    finding = diagnose(incident, scene, causes)
    with guarded("calls"):
        finding = finding if scene is None else scene.with_calls(finding)
    return finding, picture(scene, finding)


def diagnose(incident: Incident, scene: Scene | None, causes: Iterable[Entry]) -> Finding:
    """The strongest claim on the incident; of equal ones that which shows more."""
    findings = []
    for entry in causes if scene is not None else ():
        with guarded(f"diagnose {entry.name}"):
            finding = entry.diagnose(scene) if entry.diagnose and scene else None
            if finding is not None:
                findings.append(finding)
                if finding.confidence is Confidence.PROVEN:
                    break
    return max(findings, key=_strength, default=by_text(incident) or unknown(scene))


def by_text(incident: Incident) -> Finding | None:
    """What is told of an error that crossed from another process where no cause claims it: the
    general story of the cause that its text speaks for, without a word on this program."""
    if not incident.likely:
        return None
    place = incident.place
    failed = () if place is None else (Event(What.FAILED, place, certainty=Certainty.OBSERVED),)
    return Finding(incident.likely[0], Confidence.GENERAL, {}, events=failed)


def picture(scene: Scene | None, finding: Finding) -> tuple[GraphLine, ...]:
    """The part of the graph that the finding is about, where there is one."""
    with guarded("graph"):
        if scene is not None:
            from .loss_path import lines_to_the_loss

            return lines_to_the_loss(scene, finding)
    return ()


def propose(
    finding: Finding, incident: Incident, causes: Mapping[str, Entry]
) -> tuple[Proposal, ...]:
    """The cause's rewrites, best first; none of them twice."""
    found: list[Proposal] = []
    entry, slicer = causes.get(finding.cause), cache(partial(_slicer, incident))
    with guarded(f"rewrite {finding.cause}"):
        make = entry.propose if entry else None
        for proposal in make(finding, incident.program) if make else ():
            if not all(e.file is None or is_on_disk(e.file, e.old_source) for e in proposal.edits):
                continue  # edited since: the user's changes are not ours to undo
            if _fails_at_once(slicer, proposal):
                continue
            if all((proposal.fix, proposal.edits) != (p.fix, p.edits) for p in found):
                found.append(proposal)
    return tuple(found)


def _fails_at_once(slicer: Callable[[], Slicer], proposal: Proposal) -> bool:
    """Whether what it brings in is sure to raise where it runs."""
    with guarded("asked of no tensor"):
        from .no_tensor import asked_of_no_tensor
        from .rewrite.engine.edits import apply

        found = slicer()
        edited = apply(found.program, proposal.edits)
        return edited is not None and asked_of_no_tensor(found, edited.changed)
    return False


def _slicer(incident: Incident) -> Slicer:
    from .inspect.dataflow import Slicer

    return Slicer(incident.program, incident)


def verify(
    incident: Incident,
    finding: Finding,
    proposals: tuple[Proposal, ...],
    verifier: Verifier | None,
) -> tuple[Rewrite, ...]:
    """The proposals with the outcome of running them, and what a search finds, where the program
    can be run."""
    if verifier is not None:
        with guarded("verify"):
            tried = verifier(incident, finding, proposals)
            if tried is not None:
                return tried
    why = Reason("not_checked" if incident.program.is_notebook else "not_checked_outside")
    found = tuple(Rewrite(p.fix, p.edits, p.safety, p.facts, reason=why) for p in proposals)
    with guarded("likely"):
        return found or unverified(incident, finding)
    return found


def unverified(incident: Incident, finding: Finding) -> tuple[Rewrite, ...]:
    """The likeliest general edits, for a program that is not run again."""
    from .repair import likely

    if incident.cell is None or incident.kind is Kind.NOTE or finding.cause == UNKNOWN:
        return ()
    return likely(finding, request_for(incident, finding))


def request_for(incident: Incident, finding: Finding) -> Request:
    """The failure as repairing it sees it."""
    from .verification import Request, reference_for

    overwritten = finding.event(What.CHANGED) is not None
    return Request(
        program=incident.program,
        cell=incident.cell or 0,
        message=incident.message,
        kind=incident.kind,
        reference=reference_for(incident.kind, incident.message, overwritten, incident.signal),
        awaited=finding.awaited,
        awaits_steps=finding.awaits_steps,
    )


def render(diagnosis: Diagnosis, options: Options, causes: Mapping[str, Entry]) -> Explanation:
    """The diagnosis in the user's language, with the texts of the cause's own folder."""
    from .render.explanation import Explanation
    from .render.texts import load

    entry = causes.get(diagnosis.finding.cause) or causes.get(UNKNOWN)
    texts = load(entry.folder) if entry is not None else {}
    return Explanation(diagnosis, options.language, options.detail, texts)


def unknown(scene: Scene | None) -> Finding:
    """An autograd message that no cause claims: only the line is known."""
    events: tuple[Event, ...] = ()
    with guarded("place"):
        events = () if scene is None or scene.place is None else (scene.failed(),)
    return Finding(UNKNOWN, Confidence.GENERAL, {}, events=events)


def _scene(incident: Incident, match: Match) -> Scene | None:
    with guarded("inspect"):
        from .inspect.scene import Scene

        return Scene(incident, match)
    return None


def _strength(finding: Finding) -> tuple[int, int, int]:
    places = sum(e.place is not None and e.what is not What.FAILED for e in finding.events)
    return finding.confidence, places, len(finding.tensors)


def _extra(causes: Mapping[str, Entry]) -> dict[str, str]:
    """Message templates that folders of the user's bring themselves."""
    return {k: v for entry in _readable(causes.values()) for k, v in entry.messages.items()}


def _readable(causes: Iterable[Entry]) -> Iterator[Entry]:
    """The entries whose module can be imported; a broken one must not hide the others."""
    for entry in causes:
        try:
            entry.patterns, entry.messages  # noqa: B018
            if not entry.built_in:
                _read_texts(entry)
        except Exception as error:
            if not entry.built_in:
                remark(f"{entry.folder} is left out: {one_line(error)}")
            note(f"cause {entry.name}", tell=entry.built_in)
            continue
        yield entry


def _read_texts(entry: Entry) -> None:
    """Raise where the texts cannot be read: better now than when the report is drawn."""
    from .render.texts import load, read

    for text in load(entry.folder).values():
        read(text)


@contextmanager
def _unobserved() -> Iterator[None]:
    """Our own calls of torch are no business of function modes, the recorder's or the user's."""
    import torch

    with torch._C.DisableTorchFunction():
        yield
