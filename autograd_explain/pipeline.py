"""The stages, called in order: match, inspect, rewrite, verify, render.

Nothing live outlives `explain_incident`: what it gives back is data.  A stage that fails is
noted and left out; what the others found is still told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .incident import Incident
from .intercept.guard import guarded, note, remark
from .knowledge.entry import Entry, entries, one_line, unusable
from .loaded import is_on_disk
from .match import Match, match_message
from .model import Confidence, Diagnosis, Event, Finding, Kind, Reason, Rewrite, What
from .settings import Options

if TYPE_CHECKING:
    from .inspect.scene import Scene
    from .render.explanation import Explanation
    from .rewrite.engine.proposal import Proposal
    from .verify import Request

#: Tries proposals in another process; gives them back with outcomes, best first.
Verifier = Callable[[Incident, Finding, "tuple[Proposal, ...]"], tuple[Rewrite, ...]]

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
    with _unobserved():
        finding = diagnose(incident, match, candidates(match, causes))
        proposals = propose(finding, incident, causes)
        rewrites = verify(incident, finding, proposals, verifier)
    if finding.cause == UNKNOWN and incident.kind is not Kind.ERROR:
        return None
    notes = tuple(_reachable(n, finding, incident.cell) for n in notes)
    told = finding.with_details(None)  # a report pickles where the cause's folder is unknown
    outside = not incident.program.is_notebook
    diagnosis = Diagnosis(incident.kind, incident.message, told, rewrites, notes, outside)
    return render(diagnosis, options, causes)


def is_recognised(incident: Incident, options: Options) -> bool:
    """Whether `explain_incident` would have something to say, found without looking further."""
    return recognise(incident, entries(options.causes)) is not None


def _reachable(note: Reason, finding: Finding, cell: int | None) -> Reason:
    """That the cell's next run is recorded shows nothing of statements in earlier cells."""
    if note.key != "recorded_next":
        return note
    places = [e.place for e in finding.events if e.place is not None and e.place.function is None]
    earlier = [p.cell for p in places if p.cell is not None and p.cell != cell]
    return Reason("recorded_from", {"cell": f"In[{min(earlier)}]"}) if earlier else note


def recognise(incident: Incident, causes: Mapping[str, Entry]) -> Match | None:
    """The message or the recorder's signal as a match; None for anything foreign."""
    if incident.signal:
        captures = {k: v for k, v in incident.evidence.items() if isinstance(v, str)}
        return Match(incident.signal, captures, "", "", "")
    place = incident.place
    return match_message(
        incident.message, _extra(causes), source="" if place is None else place.source
    )


def candidates(match: Match, causes: Mapping[str, Entry]) -> tuple[Entry, ...]:
    """The causes that may explain the match."""
    ids = {match.pattern, *match.siblings}
    return tuple(e for e in _readable(causes.values()) if ids.intersection(e.patterns))


def diagnose(incident: Incident, match: Match, causes: Iterable[Entry]) -> Finding:
    """The strongest claim on the incident; of equal ones that which shows more."""
    findings = []
    scene = _scene(incident, match)
    for entry in causes if scene is not None else ():
        with guarded(f"diagnose {entry.name}"):
            finding = entry.diagnose(scene) if entry.diagnose and scene else None
            if finding is not None:
                findings.append(finding)
                if finding.confidence is Confidence.PROVEN:
                    break
    return max(findings, key=_strength, default=unknown(scene))


def propose(
    finding: Finding, incident: Incident, causes: Mapping[str, Entry]
) -> tuple[Proposal, ...]:
    """The cause's rewrites, best first; none of them twice."""
    found: list[Proposal] = []
    entry = causes.get(finding.cause)
    with guarded(f"rewrite {finding.cause}"):
        make = entry.propose if entry else None
        for proposal in make(finding, incident.program) if make else ():
            if not all(e.file is None or is_on_disk(e.file, e.old_source) for e in proposal.edits):
                continue  # edited since: the user's changes are not ours to undo
            if all((proposal.fix, proposal.edits) != (p.fix, p.edits) for p in found):
                found.append(proposal)
    return tuple(found)


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
            return verifier(incident, finding, proposals)
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
    from .verify import Request, reference_for

    overwritten = finding.event(What.CHANGED) is not None
    return Request(
        program=incident.program,
        cell=incident.cell or 0,
        message=incident.message,
        kind=incident.kind,
        reference=reference_for(incident.kind, incident.message, overwritten),
        awaited=finding.awaited,
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
