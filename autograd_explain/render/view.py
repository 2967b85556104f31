"""What a report shows, in one language and for no screen in particular.

`view_of` turns a Diagnosis into plain rows; `text`, `html` and `report` only draw them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ..model import (
    Diagnosis,
    Event,
    Finding,
    Kind,
    Outcome,
    Place,
    Reason,
    Rewrite,
    Role,
    Safety,
    TensorFact,
    What,
)
from . import timeline
from .diff import Hunk, hunks_of
from .labels import LABELS, label, word
from .places import short_place, where_of
from .texts import Document, Passage

Spot = tuple["int | None", "str | None", int]
_PHASE = {What.CREATED: 0, What.SAVED: 1, What.FAILED: 3}


@dataclass(frozen=True)
class Row:
    """A line of the user's program with its label.

    A row whose place is unknown has no line.  `start` and `end` delimit the expression meant, in
    characters of `source`.  `tone` is "saved", "guilty", "changed", "needed" or "other".
    `where` is the cell or the file's short name, `title` the full one.
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


@dataclass(frozen=True)
class RewriteView:
    """A rewrite as it is shown: `standing` says whether it was run and how that went."""

    number: int
    title: Passage
    outcome: Outcome
    outcome_word: str
    reason: Passage
    caution: Passage
    why: Passage
    hunks: tuple[Hunk, ...]


@dataclass(frozen=True)
class View:
    """Everything a screen needs."""

    language: str
    cause: str
    kind: Kind
    message: str
    headline: Passage
    rows: tuple[Row, ...]
    stops: tuple[timeline.Stop, ...]
    culprit: str
    why: Passage
    rewrites: tuple[RewriteView, ...]
    check: tuple[Passage, ...]
    warnings: tuple[Passage, ...]
    tensors: tuple[str, ...]
    see: tuple[Mapping[str, str], ...]
    notes: tuple[Passage, ...]
    hints: tuple[Passage, ...]


def view_of(diagnosis: Diagnosis, document: Document, language: str) -> View:
    """The report of a diagnosis in the words of its cause's text."""
    finding, facts = diagnosis.finding, diagnosis.finding.facts
    culprit = finding.tensor(Role.CULPRIT)
    rows = tuple(_without_repetition(list(_rows(diagnosis, language)), language))
    return View(
        language=language,
        cause=finding.cause,
        kind=diagnosis.kind,
        message=diagnosis.message,
        headline=document.summary(facts, finding.variant),
        rows=rows,
        stops=timeline.stops_of(finding, language),
        culprit=_name(culprit),
        why=document.passage("cause", facts, finding.variant),
        rewrites=tuple(
            _rewrite(number, rewrite, document, facts, language)
            for number, rewrite in enumerate(diagnosis.rewrites, 1)
        ),
        check=document.items("check", facts),
        warnings=warnings_of(finding, document),
        tensors=tuple(_tensor(t, language) for t in finding.tensors),
        see=document.see,
        notes=tuple(reason_label(n, language) for n in diagnosis.notes),
        hints=tuple(_hints(diagnosis, language)),
    )


def warnings_of(finding: Finding, document: Document) -> tuple[Passage, ...]:
    """Those of the cause; `Finding.warnings` names further sections `## warnings <name>`."""
    named = [w for name in finding.warnings for w in _named_warnings(name, finding, document)]
    return (*named, *document.items("warnings", finding.facts))


def _named_warnings(name: str, finding: Finding, document: Document) -> tuple[Passage, ...]:
    section = f"warnings {name}"
    return document.items(section, finding.facts) if section in document.sections else ()


def reason_label(reason: Reason, language: str) -> Passage:
    """A reason in words; one whose `why` or `what` is a code of its own has a label for that."""
    codes = (f"{reason.key}_{reason.values.get(name)}" for name in ("why", "what"))
    key = next((code for code in codes if code in LABELS), reason.key)
    return label(key, language, **reason.values) if key else Passage()


def outcome_reason(rewrite: Rewrite, language: str) -> Passage:
    """Why the outcome is what it is; what was compared, where the reason does not say."""
    compared = rewrite.comparison
    values = dict(rewrite.reason.values)
    if compared is not None:
        names = compared.differing or compared.compared
        values.setdefault("names", name_list(names))
        values.setdefault("worst", f"{compared.worst:.1e}" if compared.worst else "")
    if values.get("cell") and values.get("line"):
        values.setdefault("place", f"In[{values['cell']}]:{values['line']}")
    return reason_label(Reason(rewrite.reason.key, values), language)


def name_list(names: Iterable[str], most: int = 4) -> str:
    """`a`, `b` and so on; a long list is cut."""
    every = list(names)
    shown = ", ".join(every[:most])
    return shown if len(every) <= most else f"{shown}, … ({len(every)})"


# -- the user's lines ---------------------------------------------------------------------


def _rows(diagnosis: Diagnosis, language: str) -> Iterator[Row]:
    finding = diagnosis.finding
    guilty = [e for e in (finding.event(What.CHANGED), finding.event(What.CAUSE)) if e]
    before = _saved_version(finding)
    events = sorted(finding.events, key=lambda e: _PHASE.get(e.what, 2))
    places = [_spot(e.place) for e in guilty if e.place is not None]
    chain: tuple[Place, ...] = ()
    for event in events:
        if event.what is What.FAILED and _says_nothing_new(event, places, finding):
            continue
        text = _label(event, diagnosis, before, language)
        tone = "guilty" if event in guilty else _tone(event)
        known, chain = event.chain == chain, event.chain
        yield _row(replace(event, chain=()) if known else event, text, tone, language)
        if event.what in (What.SAVED, What.CHANGED) and event.version is not None:
            before = event.version


def _says_nothing_new(failed: Event, places: list[Spot | None], finding: Finding) -> bool:
    """Whether the failing line is the guilty line, which says so itself."""
    if failed.place is None:
        return True
    return _spot(failed.place) in places and not _mismatch(finding)


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


def _spot(place: Place | None) -> Spot | None:
    return None if place is None else (place.cell, place.file, place.line)


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
    name = _name(culprit)
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
        case _:
            return label(event.what.value, language, name=name)


def _changed_label(
    event: Event, diagnosis: Diagnosis, before: int | None, language: str
) -> Passage:
    failed = diagnosis.finding.event(What.FAILED)
    if failed is not None and event.place is not None and _same_place(failed, event):
        return label("refused", language)
    if event.version is not None and event.version == before:
        return label("changed_silently", language)
    return label("changed", language, before=before, version=event.version)


def _cause_label(event: Event, diagnosis: Diagnosis, language: str) -> Passage:
    failed = diagnosis.finding.event(What.FAILED)
    if failed is None or event.place is None or not _same_place(failed, event):
        return label("cause", language)
    return label("cause_warned" if diagnosis.kind is Kind.WARNING else "cause_failed", language)


def _failed_label(diagnosis: Diagnosis, culprit: TensorFact | None, language: str) -> Passage:
    finding = diagnosis.finding
    if culprit is not None and _mismatch(finding):
        saved, current = culprit.saved_version, culprit.current_version
        return label("needs", language, saved=saved, current=current)
    if diagnosis.kind is Kind.SILENT:
        return label("uses" if finding.event(What.CHANGED) else "failed_silent", language)
    return label("failed_warning" if diagnosis.kind is Kind.WARNING else "failed", language)


def _row(event: Event, text: Passage, tone: str, language: str) -> Row:
    place = event.place
    certainty = "" if event.what is What.FAILED else word(event.certainty.value, language)
    calls = " → ".join(short_place(p) for p in event.chain)
    from_ = label("called_from", language, places=calls) if calls else Passage()
    if place is None:
        unknown = word("place_unknown", language)
        tag = ", ".join(t for t in (certainty, unknown) if t)
        return Row("", "", None, "", 0, 0, text, tag, tone, from_)
    start, end = _marked(place)
    return Row(
        where_of(place.cell, place.file),
        place.file or "",
        place.line,
        place.source,
        start,
        end,
        text,
        certainty,
        tone,
        from_,
    )


def _marked(place: Place) -> tuple[int, int]:
    """The columns of the expression meant within `source`, which has lost its indentation."""
    span, whole = place.span, (0, len(place.source))
    if span is None or span.line != place.line:
        return whole
    start = span.column - place.indent
    end = span.end_column - place.indent if span.end_line == span.line else whole[1]
    return (start, end) if 0 <= start < end <= whole[1] else whole


# -- rewrites, tensors, hints -------------------------------------------------------------


def _rewrite(
    number: int, rewrite: Rewrite, document: Document, facts: Mapping[str, str], language: str
) -> RewriteView:
    known = {**facts, **rewrite.facts}
    unsafe = rewrite.safety is not Safety.SAME_GRADIENTS
    return RewriteView(
        number=number,
        title=document.fix_title(rewrite.fix, known),
        outcome=rewrite.outcome,
        outcome_word=word(f"outcome_{rewrite.outcome.value}", language),
        reason=outcome_reason(rewrite, language),
        caution=label(f"safety_{rewrite.safety.value}", language) if unsafe else Passage(),
        why=document.fix_reason(rewrite.fix, known),
        hunks=tuple(h for edit in rewrite.edits for h in hunks_of(edit)),
    )


def _name(tensor: TensorFact | None) -> str:
    return tensor.names[0] if tensor is not None and tensor.names else ""


def _tensor(tensor: TensorFact, language: str) -> str:
    shape = None if tensor.shape is None else f"[{', '.join(map(str, tensor.shape))}]"
    leaf = {True: "leaf", False: "non_leaf", None: ""}[tensor.is_leaf]
    parts = (
        " ".join(p for p in (tensor.dtype, shape) if p),
        tensor.device if tensor.device not in (None, "cpu") else "",
        word(leaf, language) if leaf else "",
        word("requires_grad", language) if tensor.requires_grad and tensor.is_leaf else "",
        f"grad_fn {tensor.grad_fn}" if tensor.grad_fn else "",
    )
    described = ", ".join(p for p in parts if p)
    names = " = ".join(tensor.names[:3])
    return f"{names}: {described}" if names and described else names or described


def _hints(diagnosis: Diagnosis, language: str) -> Iterator[Passage]:
    if diagnosis.rewrites:
        yield label("hint_fix" if _fills_next_cell(diagnosis) else "hint_fix_shows", language)
    if diagnosis.finding.cause != "unknown":
        yield label("hint_explain", language, cause=diagnosis.finding.cause)


def _fills_next_cell(diagnosis: Diagnosis) -> bool:
    """Whether the first rewrite is one edit of the cell that failed."""
    failed = diagnosis.finding.event(What.FAILED) or diagnosis.finding.event(What.CHANGED)
    cell = failed.place.cell if failed is not None and failed.place is not None else None
    edits = diagnosis.rewrites[0].edits
    return cell is not None and [e.cell for e in edits] == [cell]
