"""How it came to a second backward, decided from the evidence alone."""

from __future__ import annotations

import ast
from enum import Enum

from autograd_explain.inspect.dataflow.syntax import attributes_in
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.model import Place

from .evidence import Evidence


class Why(Enum):
    """How it came to the second backward; also the variant of the texts."""

    REMEMBERED = "remembered"  #: a function hands out again what its first call computed
    CARRIED = "carried"  #: a state from round to round
    DERIVATIVE = "derivative"  #: taken without create_graph, and a loss is computed from it
    SAME_LOSS = "same_loss"
    SHARED = "shared"
    BY_PART = "by_part"  #: a loop goes back from its parts one by one
    SHARED_APART = "shared_apart"  #: and what steps in between does not write to it
    SHARED_STEPPED = "shared_stepped"  #: and a step in between spoils it
    COMPUTED_ONCE = "computed_once"
    UNREAD = "unread"  #: a new one was computed beside it, and nothing reads that
    ONE_OBJECT = "one_object"  #: two calls hand out one object, which holds the second's values
    CLOSURE = "closure"
    CELL_AGAIN = "cell_again"
    SAVED_READ = "saved_read"


#: Two losses go back through one part.
SHARED = (Why.SHARED, Why.SHARED_APART, Why.SHARED_STEPPED)


def reason(known: Evidence) -> Why:
    if known.memory is not None:
        return Why.REMEMBERED
    if _ran_twice(known):
        return Why.CELL_AGAIN
    if known.in_optimizer:
        return Why.CLOSURE
    if known.derivative is not None and _freed_at_once(known):
        return Why.DERIVATIVE
    if known.by_part and not known.steps:
        return Why.BY_PART
    return _over_rounds(known) or _of_one_round(known)


def _over_rounds(known: Evidence) -> Why | None:
    """Where rounds of a loop share what was made once, or in an earlier one of them."""
    part, maker, loops = known.part, known.part.maker, known.loops
    if part.kept is not None:
        return Why.CARRIED
    if part.read_by:
        return Why.COMPUTED_ONCE
    if not loops:
        return Why.CARRIED if _comes_again(known) or _builds_on_itself(known) else None
    if _in_this_round(known) or _in_turn(known):
        return None
    if maker is None or not loops.hold(maker):
        kept = maker is None and known.held is not None and known.held.given is not None
        return Why.CARRIED if kept else Why.COMPUTED_ONCE
    if part.whole and part.first is not None and not _at_failing_line(known, part.first):
        return Why.SAME_LOSS
    once = loops.begin_after(maker) or (loops.called_after(maker) and not _made_again(known))
    return Why.COMPUTED_ONCE if once else Why.CARRIED


def _made_again(known: Evidence) -> bool:
    """Whether the line that made the old value has made something newer: it is one of an earlier
    round."""
    maker = known.part.maker
    lines = {(m.place.line_id, m.order) for m in known.part.newer}
    return maker is not None and any(
        line == maker.place.line_id and order > maker.order for line, order in lines
    )


def is_kept_late(known: Evidence) -> bool:
    """Whether a round made the old value behind its own backward, and the next one freed it."""
    first, maker = known.part.first, known.part.maker
    before = () if maker is None else (m for m in known.freeing if m.order < maker.order)
    return first is not None and any(m.place.line_id == first.place.line_id for m in before)


def _comes_again(known: Evidence) -> bool:
    """Whether a line that keeps the old value and reads it again made a new one since: the rounds
    are those of a library's loop, or calls one after the other."""
    part = known.part
    if part.maker is None or not part.carried or part.whole:
        return False
    at, made = part.maker.place.line_id, part.maker.order
    return any(m.place.line_id == at and m.order > made for m in part.newer)


def _builds_on_itself(known: Evidence) -> bool:
    """Whether what keeps the old value reads what it keeps, `self.mean = 0.9 * self.mean + …`, and
    one line of the user's went backward both times: the rounds are a library's."""
    part = known.part
    statement = None if part.binding is None else part.binding.statement
    if not isinstance(statement, ast.Assign) or part.first is None or part.whole:
        return False
    kept = {ast.unparse(t) for t in statement.targets if isinstance(t, ast.Attribute)}
    again = kept & attributes_in(statement.value)
    return bool(again) and _at_failing_line(known, part.first)


def _of_one_round(known: Evidence) -> Why:
    if known.part.whole and not known.steps:
        return Why.SAME_LOSS
    if any(s.spoils for s in known.steps):
        return Why.SHARED_STEPPED
    apart = known.steps and all(s.writes is False for s in known.steps)
    return Why.SHARED_APART if apart else Why.SHARED


def _in_this_round(known: Evidence) -> bool:
    """Whether the old value was made in the round of the loop that failed, not in an earlier one.

    Then the failing line has not run since, and nothing newer was made where it was made.
    """
    part, first, maker = known.part, known.part.first, known.part.maker
    if maker is None or first is None or not known.loops.hold(maker):
        return False
    since = [m for m in known.trace if m.op == "backward" and m.order > maker.order]
    if any(_at_failing_line(known, m) for m in (first, *since[:-1])):
        return False
    here = (m for m in (*part.made, *part.newer) if m.place.line_id == maker.place.line_id)
    return not any(m.order > first.order for m in here)


def _in_turn(known: Evidence) -> bool:
    """Whether several losses of one forward pass go backward in turn: what failed was made before
    the earlier backward, and none came between what they share and it."""
    loss, maker, first = known.loss, known.part.maker, known.part.first
    if loss is None or maker is None or first is None or known.part.whole:
        return False
    between = any(maker.order < m.order < loss.order for m in known.freeing)
    grown = any(m.order > first.order for m in known.part.newer)  # `total += loss` in place
    return loss.order < first.order and not between and not grown


def _freed_at_once(known: Evidence) -> bool:
    """Whether nothing went backward between the making of the old value and its freeing: it is not
    one of an earlier round."""
    first, maker = known.part.first, known.part.maker
    if first is None or maker is None:
        return first is not None and not known.freeing  # only the source tells of the call
    return not any(maker.order < m.order < first.order for m in known.freeing)


def _at_failing_line(known: Evidence, moment: TraceEvent) -> bool:
    return any(p.line_id == moment.place.line_id for p in known.failed[-1:])


def _ran_twice(known: Evidence) -> bool:
    """The failing cell ran before with the same text, and its loss comes from another cell."""
    if len(known.failed) != 1 or known.loops:
        return False
    elsewhere = known.loss is None or known.loss.place.cell != known.cell
    return elsewhere and any(run != known.cell for run in known.runs)


def before_loop(known: Evidence) -> Place | None:
    """Where the old value was made, if outside of the loops around the failing line and before
    anything that they did: then no round of them has made it."""
    maker = known.part.maker
    if maker is None or known.loops.hold(maker):
        return None
    rounds = [m.order for m in known.trace if known.loops.hold(m)]
    return maker.place if rounds and maker.order < min(rounds) else None


def loss_of_another_cell(known: Evidence) -> Place | None:
    """Where the loss was made, if in a cell that ran before this one did for the first time."""
    made = known.loss
    if made is None or made.place.cell is None or not known.runs:
        return None
    return made.place if made.place.cell < min(known.runs) else None
