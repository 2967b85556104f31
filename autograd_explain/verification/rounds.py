"""What left the graph in the rounds of a run, and whether that is meant, judged by the rounds of
others in which it was moved.

A number or an array that was computed in the round of a backward, and that the loss of this
backward depends on, is a term that the gradient knows nothing of.  The program may well
mean it.  A derivative by torch.autograd.grad without `create_graph` is such a value, too, but as a
step it is meant so: one with respect to what is trained, or that the same weights are applied to
again (an adversarial example, a sample, a first-order update).  A number that weighs other terms
is meant: there the gradients follow it, too.  An array or the number of one parameter is a target,
an old value or a sample where the gradients of the very leaves behind it follow (a semi-gradient,
a ratio of policies); a weight of other terms where no layer reads it.  What leaves inside the
`forward` of a custom Function, its `backward` speaks for.  That no gradient follows a value is
seen when it is moved far, in both directions.

A `.detach()` or `no_grad` that was written is taken at its word, unless NumPy asked for it, and
looked at only where the recorder has reason to (`record/detect/partial_cuts.py`).  It is none of
these (a target, a weight, a straight-through trick) where no gradient of the backward follows it;
where the line detaches what has no graph, too, and the gradients of the leaves behind it do not
follow; where it is a sample that `rsample` would have computed, and nothing makes a score
function of it; or where it drops the graph of a derivative that `create_graph` asks for, and
updates with it what is trained, as an inner step does.  What a package stops by a switch of its
own is lacking where an optimizer steps what is behind it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from .dependence import same_numbers
from .plan import CodeRange, SeveredValue

_STEP = 1e-2
_FAR = 0.5  #: for a derivative: a penalty may make a small part of a loss
#: Past the kinks of a loss: the gradient of |a - b| knows b by a sign.
_AWAY = (30.0, -30.0)
_MAX_TRIED = 6


class Stop(str, Enum):
    """What speaks for a written stop to be none that is meant."""

    TERM = "term"  #: it is a term of a loss, of which perhaps nothing else is computed
    ARRAY = "array"  #: NumPy asked for it, and perhaps makes such a term of it
    SHARED = "shared"  #: its line stops what has no graph, too
    DRAWN = "drawn"  #: it is a sample, with no density of it in the loss
    DENSITY = "density"  #: the same, with one that weighs every element alike
    UPDATE = "update"  #: it is a derivative, recorded as it was asked, that updates what is trained
    SWITCH = "switch"  #: a package wrote it, and has a switch for it
    MEANT = "meant"  #: nothing: it passes straight through, or makes a score function


_DRAWN = (Stop.DRAWN, Stop.DENSITY)
_TERMS = (Stop.TERM, Stop.ARRAY)
#: How far to move first: what was asked about may make a small part of a loss.
_STEPS = {
    None: _STEP,
    Stop.ARRAY: _STEP,
    Stop.SWITCH: _STEP,
    Stop.DRAWN: 0.5,
    Stop.DENSITY: 0.5,
    Stop.UPDATE: 0.5,
    Stop.TERM: _AWAY[0],
    Stop.SHARED: _AWAY[0],
}


@dataclass(frozen=True)
class Left:
    """What left the graph at a line, in one round.

    `leaves` are names of those behind it that the backward reached by another way, `lost` of those
    that it did not reach; `single` says
    that one number of one leaf alone is behind it; `scalar` that it was a number.  `free`: it left
    by a call that gives no choice (`item`, `tolist`, a copy), or nothing between it and the leaves
    is shared with what the loss does know.  `begun` is the round in which it left first.  `step`
    says of a derivative that it may be meant as one, and is None of other values; `others` are the
    leaves behind it, by identity, that it is not with respect to, or all behind a switch.  `given`
    tells the gradients of `leaves` apart from other ones.  `stopped` tells what was written as a
    stop and asked about.
    """

    leaves: tuple[str, ...]
    lost: tuple[str, ...]
    single: bool
    scalar: bool
    free: bool
    begun: int
    step: bool | None = None
    others: frozenset[int] = frozenset()
    given: tuple[float, ...] = ()
    stopped: Stop | None = None


class Read(NamedTuple):
    """What tells apart a value without a history to which a layer has applied these leaves."""

    value: float
    leaves: frozenset[int]


@dataclass(frozen=True)
class Round:
    """A backward: its loss, what tells its gradients apart, what left before it, and what layers
    have read by then.  `whole` is False for torch.autograd.grad."""

    loss: float
    given: tuple[float, ...]
    left: Mapping[tuple[CodeRange, ...], Left]
    read: tuple[Read, ...] = ()
    whole: bool = True


@dataclass(frozen=True)
class Moved:
    """The values that leave at a line from the round `begun` on are to be moved, and the loss of
    this round is to be looked at."""

    round: int
    begun: int
    place: tuple[CodeRange, ...]
    step: float


def candidates(first: Sequence[Round], second: Sequence[Round]) -> tuple[Moved, ...]:
    """What to move, a line once; () where two runs of the program give different losses."""
    losses = [[r.loss for r in rounds] for rounds in (first, second)]
    if not all(map(math.isfinite, losses[0])) or not same_numbers(*losses):
        return ()
    found: dict[tuple[CodeRange, ...], Moved] = {}
    for number, a_round in sorted(enumerate(first), key=lambda pair: not pair[1].whole):
        for place, left in a_round.left.items():
            if _is_candidate(left):
                step = _STEPS[left.stopped] if left.step is None else _FAR
                found.setdefault(place, Moved(number, left.begun, place, step))
    return tuple(found.values())[:_MAX_TRIED]


def _is_candidate(left: Left) -> bool:
    if left.stopped is not None:
        known = left.leaves or (left.lost and left.stopped in _DRAWN)
        return bool(known) and left.stopped is not Stop.MEANT
    return bool(left.leaves or left.lost) and left.free


def severed(moved: Moved, before: Sequence[Round], after: Sequence[Round]) -> SeveredValue | None:
    """What the gradient lacks; None where the loss does not depend on it, or where it may be
    meant."""
    if not is_lacking(moved, before, after):
        return None
    old, new = before[moved.round], after[moved.round]
    if same_numbers((old.loss,), (new.loss,)):
        return None
    left = old.left[moved.place]
    return SeveredValue(moved.place, left.leaves, left.lost, left.stopped in _DRAWN)


def moved_away(moved: Moved, before: Sequence[Round], after: Sequence[Round]) -> tuple[Moved, ...]:
    """The moves that have to show the same, where no gradient has followed the first: those of the
    leaves behind it, if its line is shared."""
    old, new = before[moved.round], after[moved.round]
    shared = old.left[moved.place].stopped is Stop.SHARED
    far = shared or same_numbers(old.given, new.given)
    return tuple(replace(moved, step=s) for s in _AWAY if s != moved.step) if far else ()


def is_lacking(moved: Moved, before: Sequence[Round], after: Sequence[Round]) -> bool:
    """Whether a gradient lacks the value, if the loss depends on it."""
    if len(after) <= moved.round:
        return False
    old, new = before[moved.round], after[moved.round]
    return not _may_be_meant(old.left[moved.place], moved, old, new)


def _may_be_meant(left: Left, moved: Moved, old: Round, new: Round) -> bool:
    """Whether gradients follow the value in a way that stops it on purpose, too: as a step, a
    target or a weight.  One that they do not follow is a term which they lack."""
    if same_numbers(old.given, new.given):
        return False
    again = new.left.get(moved.place)
    own = again is None or not same_numbers(left.given, again.given)
    if left.stopped is Stop.SWITCH:
        return False
    if left.stopped is not None:
        follows = own and left.stopped not in (Stop.DENSITY, Stop.UPDATE)
        return left.stopped in _TERMS or follows
    applied = _applied(old.read, new.read)
    if left.step is not None:
        return left.step or bool(applied & left.others)
    if left.scalar and not left.single:
        return True
    return own or not (left.scalar or applied)


def _applied(old: Sequence[Read], new: Sequence[Read]) -> set[int]:
    """The leaves that layers have applied to another value than before."""
    if len(old) != len(new):
        return set()
    pairs = zip(old, new, strict=True)
    return {leaf for a, b in pairs if not same_numbers((a.value,), (b.value,)) for leaf in a.leaves}
