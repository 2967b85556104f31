"""The user's lines of a report: what happened at each, in words, and how it is to be marked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..model import (
    Certainty,
    Diagnosis,
    Event,
    Finding,
    Kind,
    LineId,
    Place,
    Relation,
    Role,
    TensorFact,
    What,
)
from .labels import label, word
from .places import short_place, where_of
from .rails import Rail
from .texts import Passage

_PHASE = {What.CREATED: 0, What.SAVED: 1, What.FAILED: 3}


@dataclass(frozen=True)
class Row:
    """A line of the user's program with its label.

    A row whose place is unknown has neither line nor `where`; one whose file was changed after
    it had been loaded has no line, and says so instead of its source.  `start` and `end` delimit
    the expression meant, in characters of `source`.  `tone` is "saved", "guilty", "changed",
    "needed" or "other".
    `where` is the cell or the file's short name, `title` the full one.  A row of tone "path" is one
    that the gradient passes, of tone "step" one of a whole graph; `rail` is what of the graph is
    drawn beside a row.
    """

    where: str
    title: str
    line: int | None
    source: str
    start: int
    end: int
    label: Passage
    certainty: str
    tone: str
    called_from: Passage
    at: LineId | None = None
    rail: Rail | None = None


def rows_of(diagnosis: Diagnosis, language: str) -> tuple[Row, ...]:
    """The rows in the order of time; of many writes the first and the last."""
    return tuple(_without_repetition(list(_rows(diagnosis, language)), language))


def _rows(diagnosis: Diagnosis, language: str) -> Iterator[Row]:
    finding = diagnosis.finding
    guilty = [e for e in (finding.event(What.CHANGED), finding.event(What.CAUSE)) if e]
    before, in_a_note = _saved_version(finding), certainty_of(finding) is not None
    events = sorted(dict.fromkeys(finding.events), key=lambda e: _phase(e, finding))
    places = [_spot(e.place) for e in guilty if e.place is not None]
    chain: tuple[Place, ...] = ()
    for event in events:
        if event.what is What.FAILED and _says_nothing_new(event, places, finding):
            continue
        text = _label(event, diagnosis, before, language)
        tone = "guilty" if event in guilty else _tone(event)
        unsure = event.certainty is Certainty.INFERRED and not _known_from_traceback(event, finding)
        certainty = event.certainty.value if unsure and not in_a_note else ""
        known, chain = event.chain == chain, event.chain
        shown = replace(event, chain=()) if known else event
        yield _row(shown, text, tone, word(certainty, language) if certainty else "", language)
        if event.what in (What.SAVED, What.CHANGED) and event.version is not None:
            before = event.version


def _phase(event: Event, finding: Finding) -> int:
    """An alias matters for the write: it is told after what was saved, unless it stands above."""
    if event.relation is not Relation.ALIAS:
        return _PHASE.get(event.what, 2)
    saved = finding.event(What.SAVED)
    return 0 if saved is not None and _stands_above(event.place, saved.place) else 1


def _stands_above(first: Place | None, second: Place | None) -> bool:
    if first is None or second is None or (first.cell, first.file) != (second.cell, second.file):
        return False
    return first.line < second.line


def _says_nothing_new(failed: Event, places: list[LineId | None], finding: Finding) -> bool:
    """Whether the failing line is the guilty line, which says so itself."""
    if failed.place is None:
        return True
    return _spot(failed.place) in places and not _mismatch(finding)


def _known_from_traceback(event: Event, finding: Finding) -> bool:
    """Whether the traceback itself shows the place, so that nobody asks how sure it is."""
    failed = finding.event(What.FAILED)
    if event.what is What.CAUSE:
        return failed is not None and _same_place(failed, event)
    return event.what is What.FAILED


def certainty_of(finding: Finding) -> Certainty | None:
    """How sure all lines are that the traceback does not show itself; None where they differ.

    Said once instead of at every line; where they differ, only what is inferred is marked.
    """
    asked = {
        e.certainty for e in finding.events if e.place and not _known_from_traceback(e, finding)
    }
    return asked.pop() if len(asked) == 1 else None


def _without_repetition(rows: list[Row], language: str) -> Iterator[Row]:
    """Of many further writes only the last is shown."""
    further = [row for row in rows if row.tone == "changed"]
    for row in rows:
        if len(further) < 3 or row not in further[:-1]:
            yield row
        elif row is further[0]:
            more = label("more_writes", language, count=len(further) - 1)
            yield replace(row, line=None, where="", title="", source="", label=more, certainty="")


def _same_place(first: Event, second: Event) -> bool:
    return _spot(first.place) == _spot(second.place)


def _spot(place: Place | None) -> LineId | None:
    return None if place is None else place.line_id


def _saved_version(finding: Finding) -> int | None:
    culprit = finding.tensor(Role.CULPRIT)
    return None if culprit is None else culprit.saved_version


def _mismatch(finding: Finding) -> bool:
    culprit = finding.tensor(Role.CULPRIT)
    return (
        culprit is not None
        and culprit.saved_version is not None
        and culprit.saved_version != culprit.current_version
    )


def _tone(event: Event) -> str:
    tones = {What.SAVED: "saved", What.CHANGED: "changed", What.FAILED: "needed"}
    return tones.get(event.what, "other")


def _label(event: Event, diagnosis: Diagnosis, before: int | None, language: str) -> Passage:
    finding = diagnosis.finding
    culprit = finding.tensor(Role.CULPRIT)
    name = name_of(culprit)
    match event.what:
        case What.SAVED:
            version = before if event.version is None else event.version
            return label("saved", language, name=name, version=version, op=event.op)
        case What.CHANGED:
            return _changed_label(event, diagnosis, before, language)
        case What.CAUSE:
            return _cause_label(event, diagnosis, language)
        case What.FAILED:
            return _failed_label(diagnosis, culprit, language)
        case What.CREATED if event.relation is Relation.OPERAND:
            return label("carried", language)
        case What.CREATED if event.relation is Relation.ALIAS:
            return label("alias", language)
        case What.CREATED if event.relation is Relation.LEAF:
            return label("leaf_made", language, name=name)
        case _:
            return label(event.what.value, language, name=name)


def _changed_label(
    event: Event, diagnosis: Diagnosis, before: int | None, language: str
) -> Passage:
    if _was_refused(event, diagnosis):
        return label("refused", language)
    if event.version is not None and event.version == before:
        return label("changed_silently", language)
    return label("changed", language, before=before, version=event.version)


def _was_refused(event: Event, diagnosis: Diagnosis) -> bool:
    """Whether torch raised at the write itself, before anything changed."""
    failed = diagnosis.finding.event(What.FAILED)
    if failed is None or event.place is None or diagnosis.kind is not Kind.ERROR:
        return False
    return _same_place(failed, event) and not _mismatch(diagnosis.finding)


def _cause_label(event: Event, diagnosis: Diagnosis, language: str) -> Passage:
    failed = diagnosis.finding.event(What.FAILED)
    if failed is None or event.place is None or not _same_place(failed, event):
        first = event is diagnosis.finding.event(What.CAUSE)
        return label("cause" if first else "cause_too", language)
    return label("cause_warned" if diagnosis.kind is Kind.WARNING else "cause_failed", language)


def _failed_label(diagnosis: Diagnosis, culprit: TensorFact | None, language: str) -> Passage:
    finding = diagnosis.finding
    if culprit is not None and _mismatch(finding):
        saved, current = culprit.saved_version, culprit.current_version
        return label("needs", language, saved=saved, current=current)
    if diagnosis.kind in (Kind.SILENT, Kind.NOTE):
        return label("uses" if finding.event(What.CHANGED) else "failed_silent", language)
    return label("failed_warning" if diagnosis.kind is Kind.WARNING else "failed", language)


def _row(event: Event, text: Passage, tone: str, certainty: str, language: str) -> Row:
    calls = " → ".join(short_place(p) for p in event.chain)
    from_ = label("called_from", language, places=calls) if calls else Passage()
    if event.inside is not None:
        place, source = short_place(event.inside), event.inside.source
        from_ = label("inside", language, places=calls, place=place, source=source)
    row = row_at(event.place, text, tone, language)
    tag = ", ".join(t for t in (certainty, row.certainty) if t)
    return replace(row, certainty=tag, called_from=from_)


def row_at(place: Place | None, text: Passage, tone: str, language: str) -> Row:
    """A row of a line; without a place it says that the line is not known."""
    if place is None:
        unknown = word("place_unknown", language)
        return Row("", "", None, "", 0, 0, text, unknown, tone, Passage())
    start, end = _marked(place) if tone != "path" else (0, 0)
    changed = word("file_changed", language, function=place.function) if place.changed else ""
    return Row(
        where_of(place.cell, place.file),
        place.file or "",
        None if place.changed else place.line,
        changed or place.source,
        start,
        end,
        text,
        "",
        tone,
        Passage(),
        place.line_id,
    )


def _marked(place: Place) -> tuple[int, int]:
    """The columns of the expression meant within `source`, which has lost its indentation."""
    span, whole = place.span, (0, len(place.source))
    if span is None or span.line != place.line:
        return whole
    start = span.column - place.indent
    end = span.end_column - place.indent if span.end_line == span.line else whole[1]
    return (start, end) if 0 <= start < end <= whole[1] else whole


def name_of(tensor: TensorFact | None) -> str:
    """The best name of a tensor, "" where it has none."""
    return tensor.names[0] if tensor is not None and tensor.names else ""
