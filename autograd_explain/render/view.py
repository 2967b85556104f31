"""What a report shows, in one language and for no screen in particular.

`view_of` turns a Diagnosis into plain rows; `text`, `html` and `report` only draw them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ..model import (
    Diagnosis,
    Kind,
    Outcome,
    Reason,
    Rewrite,
    Role,
    Safety,
    TensorFact,
    What,
)
from . import timeline
from .commands import commands
from .diff import Hunk, hunks_of
from .fill import LONGEST
from .graph_rows import with_graph
from .labels import LABELS, label, source, word
from .places import where_of
from .rows import Row, certainty_of, name_of, rows_of
from .texts import Document, Passage, line

_BACKWARD = re.compile(r"([\w.]+)\.backward\(")
_MOST_NAMES = 4  #: of a list
_LONGEST_CELL = 800  #: characters; a longer one `%autograd_fix` hands over


@dataclass(frozen=True)
class RewriteView:
    """A rewrite as it is shown: `outcome` says whether it was run and how that went, `cells` are
    the changed cells as a whole with what they are called."""

    heading: str
    title: Passage
    outcome: Outcome
    outcome_word: str
    reason: Passage
    caution: Passage
    why: Passage
    hunks: tuple[Hunk, ...]
    cells: tuple[tuple[str, str], ...]


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


def view_of(diagnosis: Diagnosis, document: Document, language: str, detail: str = "short") -> View:
    """The report of a diagnosis in the words of its cause's text."""
    finding = diagnosis.finding
    facts = {**commands(diagnosis.outside), **finding.facts}
    rows = with_graph(rows_of(diagnosis, language), diagnosis.graph, language, _root(diagnosis))
    drawn = any(row.rail for row in rows)  # tells more than the versions beside each other
    return View(
        language=language,
        cause=finding.cause,
        kind=diagnosis.kind,
        message=diagnosis.message,
        headline=document.summary(facts, finding.variant),
        rows=rows,
        stops=() if drawn else timeline.stops_of(finding, language),
        culprit=name_of(finding.tensor(Role.CULPRIT)),
        why=document.passage("cause", facts, finding.variant),
        rewrites=told_apart(_rewrites(diagnosis, document, language), language),
        check=document.items("check", facts, finding.variant),
        warnings=document.items("warnings", facts),
        tensors=tuple(_tensor(t, language) for t in finding.tensors),
        see=document.see,
        notes=tuple(_notes(diagnosis, language)),
        hints=tuple(_hints(diagnosis, language, whole=detail == "full")),
    )


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
    key = rewrite.reason.key
    if key == "differs" and rewrite.safety is Safety.CHANGES_MEANING:
        key = "differs_on_purpose"  # others that differ are not proposed
    return reason_label(Reason(key, values), language)


def name_list(names: Iterable[str], most: int = _MOST_NAMES) -> str:
    """`a`, `b` and so on; a long list is cut, between names."""
    every = list(names)
    for count in range(min(len(every), most or _MOST_NAMES, _MOST_NAMES), 0, -1):
        more = "" if count == len(every) else f", … ({len(every)})"
        shown = ", ".join(every[:count]) + more
        if len(shown) <= LONGEST:
            return shown
    return shown if every else ""


# -- rewrites, tensors, hints -------------------------------------------------------------


def _rewrites(diagnosis: Diagnosis, document: Document, language: str) -> Iterator[RewriteView]:
    count, facts = len(diagnosis.rewrites), diagnosis.finding.facts
    for number, rewrite in enumerate(diagnosis.rewrites, 1):
        heading = _heading(number, count, language)
        yield _rewrite(heading, rewrite, diagnosis.kind, document, facts, language)


def _rewrite(
    heading: str,
    rewrite: Rewrite,
    kind: Kind,
    document: Document,
    facts: Mapping[str, str],
    language: str,
) -> RewriteView:
    known = {**facts, **rewrite.facts}
    caution = _caution_key(rewrite, kind)
    return RewriteView(
        heading=heading,
        title=document.fix_title(rewrite.fix, known),
        outcome=rewrite.outcome,
        outcome_word=word(_outcome_key(rewrite), language),
        reason=outcome_reason(rewrite, language),
        caution=label(caution, language) if caution else Passage(),
        why=document.fix_reason(rewrite.fix, known),
        hunks=tuple(h for edit in rewrite.edits for h in hunks_of(edit)),
        cells=tuple(_whole_cells(rewrite, language)),
    )


def _caution_key(rewrite: Rewrite, kind: Kind) -> str:
    """What there is to say against it; what it is made for, other gradients of a program whose
    own are wrong, is nothing."""
    if rewrite.safety is Safety.SAME_GRADIENTS:
        return ""
    if rewrite.outcome is not Outcome.VERIFIED:
        return f"safety_{rewrite.safety.value}"
    return "" if kind is Kind.SILENT else "safety_beyond_gradients"


def _outcome_key(rewrite: Rewrite) -> str:
    waits = rewrite.reason.key == "being_tried"
    return "outcome_being_tried" if waits else f"outcome_{rewrite.outcome.value}"


def _whole_cells(rewrite: Rewrite, language: str) -> Iterator[tuple[str, str]]:
    """The changed cells to copy, unless they are long."""
    for edit in rewrite.edits:
        if edit.cell is not None and len(edit.new_source) <= _LONGEST_CELL:
            yield word("whole_cell", language, cell=f"In[{edit.cell}]"), edit.new_source.strip("\n")


def told_apart(rewrites: Iterable[RewriteView], language: str) -> tuple[RewriteView, ...]:
    """Of rewrites with one and the same title, each also shows the first line that only it adds."""
    views = tuple(rewrites)
    titles = [view.title.plain() for view in views]
    return tuple(
        replace(view, title=_with_line(view, views, language)) if titles.count(title) > 1 else view
        for view, title in zip(views, titles, strict=True)
    )


def _with_line(view: RewriteView, views: Iterable[RewriteView], language: str) -> Passage:
    title = view.title.plain()
    others = {a for v in views if v is not view and v.title.plain() == title for a in _added(v)}
    own = [added for added in _added(view) if added not in others]
    if not own:
        return view.title
    where, number, text = own[0]
    if any(text == other for _, _, other in others):
        text = f"{where}:{number} {text}"
    return view.title.then(line(source("colon", language) + "`{text}`", {"text": text}))


def _added(view: RewriteView) -> Iterator[tuple[str, int, str]]:
    for hunk in view.hunks:
        for added in hunk.lines:
            if added.sign == "+" and added.text.strip():
                yield where_of(None, hunk.where), added.number, added.text.strip()


def _heading(number: int, count: int, language: str) -> str:
    """`Rewrite`, or `Rewrite 1 of 3`."""
    return word("rewrite", language, **({"number": number, "count": count} if count > 1 else {}))


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


def _notes(diagnosis: Diagnosis, language: str) -> Iterator[Passage]:
    certainty = certainty_of(diagnosis.finding)
    if certainty is not None:
        yield label(f"lines_{certainty.value}", language)
    yield from (reason_label(note, language) for note in diagnosis.notes)


def _hints(diagnosis: Diagnosis, language: str, whole: bool) -> Iterator[Passage]:
    if diagnosis.rewrites and not diagnosis.outside:
        yield label(_fix_hint(diagnosis), language)
        if len(diagnosis.rewrites) > 1:
            yield label("hint_fix_second", language)
    if diagnosis.finding.cause != "unknown" and not whole:
        key = "hint_explain_outside" if diagnosis.outside else "hint_explain"
        yield label(key, language, cause=diagnosis.finding.cause)


def _root(diagnosis: Diagnosis) -> str:
    """What went backward, where it lives on under its name: the whole graph can be asked for."""
    failed = None if diagnosis.outside else diagnosis.finding.place(What.FAILED)
    named = None if failed is None or failed.function else _BACKWARD.match(failed.source)
    return "" if named is None else named[1]


def _fix_hint(diagnosis: Diagnosis) -> str:
    """What the first rewrite takes: a change of the failed cell alone, of cells, or of files."""
    failed = diagnosis.finding.event(What.FAILED) or diagnosis.finding.event(What.CHANGED)
    cell = failed.place.cell if failed is not None and failed.place is not None else None
    cells = [edit.cell for edit in diagnosis.rewrites[0].edits]
    if cell is not None and cells == [cell]:
        return "hint_fix"
    return "hint_fix_cell" if None not in cells else "hint_fix_file"
