"""Where an edit got the program past its failure to another one: what may repair both.

The second edit is looked for in the edited program, near its own failure and the first edit, and by
what torch complains of there.  Both together are judged as one rewrite of the user's program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from ..match import match_message
from ..model import (
    Confidence,
    Edit,
    Event,
    Finding,
    Kind,
    Outcome,
    Place,
    Rewrite,
    Safety,
    What,
    lines_of,
)
from ..program import Source
from ..program_index import index_of
from ..rewrite import Proposal
from ..rewrite.engine.edits import Edited, apply, merge
from ..verification import SCRIPT, Reference, Request, reference_for
from .candidates import Candidate, candidates, shortened

_MOST_SECOND = 24  #: edits that are tried on top of one
BOTH = "repair_two"  #: the key of the texts about both


@dataclass(frozen=True)
class Moved:
    """A first edit, the program with it, and that program's failure, so many backwards further."""

    first: Rewrite
    score: float
    further: int
    edited: Edited
    place: Place
    message: str


def moved(score: float, rewrite: Rewrite, finding: Finding, request: Request) -> Moved | None:
    """The failure that an edit has led to; None where it is the one that was there before, is no
    complaint of autograd's, or may come of the edit itself."""
    told = rewrite.reason.values
    if rewrite.outcome is not Outcome.FAILS or "text" not in told or "line" not in told:
        return None
    edited = apply(request.program, rewrite.edits)
    message = told["text"]
    source = None if edited is None else _source(edited, int(told.get("cell", "0")))
    if edited is None or source is None or match_message(message) is None:
        return None
    further, place = int(told["further"]), _place(source, int(told["line"]))
    # A graph that is cut now may have been cut by the edit.
    sound = reference_for(Kind.ERROR, message) is not Reference.NONE
    if request.kind is Kind.SILENT:  # it ran to its end before, without this part of the graph
        further = 1 if sound else 0
    elif further == 0:
        same = message.split() == request.message.split()
        same = same and _is_at(edited, finding, place)
        further = 1 if sound and not same else 0
    return Moved(rewrite, score, further, edited, place, message) if further > 0 else None


def _source(edited: Edited, number: int) -> Source | None:
    """A cell, or the file that is the program."""
    cells = reversed(index_of(edited.program).runs)
    return next((source for source in cells if (source.cell or SCRIPT) == number), None)


def _place(source: Source, line: int) -> Place:
    """A line of what ran of a cell, which is what stands behind the magics at its head."""
    heads = takewhile(lambda text: text.startswith("%%"), lines_of(source.text))
    return source.place(line + sum(1 for _ in heads) - source.offset)


def _is_at(edited: Edited, finding: Finding, place: Place) -> bool:
    """Whether a line of the edited program is the one that failed before."""
    failed = finding.event(What.FAILED)
    before = None if failed is None or failed.place is None else edited.place(failed.place)
    return before is None or (before.cell, before.line) == (place.cell, place.line)


def second_edits(found: Moved, request: Request) -> Iterator[tuple[Candidate, Proposal]]:
    """What may repair the failure that is left, each together with the first edit."""
    then = replace(
        request,
        program=found.edited.program,
        message=found.message,
        reference=reference_for(Kind.ERROR, found.message),
    )
    begun = list(_edited(found))
    events = (Event(What.FAILED, found.place), *(Event(What.CREATED, p) for p in begun))
    finding = Finding("", Confidence.GENERAL, {}, events=events)
    first, lines = found.first.fix.removeprefix("repair_"), {p.line for p in begun}
    for candidate in islice(candidates(finding, then), _MOST_SECOND):
        again = candidate.operator == first and candidate.changes[0].site.place.line in lines
        proposal = None if again else _both(found.first, candidate)
        if proposal is not None:
            yield replace(candidate, score=found.score * candidate.score, first=first), proposal


def _edited(found: Moved) -> Iterator[Place]:
    """Where the first edit begins, in the edited program."""
    for edit in found.first.edits:
        at = _first_other(edit)
        for source in index_of(found.edited.program).runs_of(edit.new_source)[-1:]:
            if at is not None:
                yield source.place(at + 1 - source.offset)


def _both(first: Rewrite, candidate: Candidate) -> Proposal | None:
    second = candidate.proposal()
    edits = None if second is None else merge(first.edits, second.edits)
    if second is None or not edits:
        return None
    same = first.safety is second.safety is Safety.SAME_GRADIENTS
    safety = Safety.SAME_GRADIENTS if same else Safety.CHANGES_MEANING
    facts = {"first": _changed_line(first.edits), "second": _changed_line(second.edits)}
    return Proposal(BOTH, edits, safety, facts)


def _changed_line(edits: Iterable[Edit]) -> str:
    """The first line of the user's that an edit changes."""
    for edit in edits:
        old, new = lines_of(edit.old_source), lines_of(edit.new_source)
        at = _first_other(edit)
        return shortened(old[min(len(old), len(new)) - 1 if at is None else at])
    return ""


def _first_other(edit: Edit) -> int | None:
    """The number, from 0, of the first line that both texts have and that is not the same."""
    pairs = enumerate(zip(lines_of(edit.old_source), lines_of(edit.new_source), strict=False))
    return next((n for n, (old, new) in pairs if old != new), None)
