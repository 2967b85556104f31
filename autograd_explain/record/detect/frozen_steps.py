"""Optimizers that step what was frozen while they are used: for another one's turn, and left so;
or in the midst of each loss, whose backward then drops its gradient.

A step without a gradient is no fault by itself: parameters are frozen by schedule, and their
optimizer goes on among others.  It is one where a backward ran for this step alone, so that nobody
used the gradients it gave, and no later step of the cell found any; or where loss after loss is
computed of parameters that none trains, and goes on when they were frozen: what is frozen for the
backward alone is frozen behind the loss.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from ..observe.event_log import EventLog, Frozen
from ..observe.tensor_facts import address, is_zero, unseen
from .finding import CandidateFault, Mark, Marks, Weak, weak
from .unused_gradients import Followed, Gradients

_MAX_STEPS = 100


@dataclass
class _InVain:
    """The first of an optimizer's steps in vain.  `fed` are the others that the backward before it
    gave gradients to, and that have not cleared these; `turn` is the step of another optimizer
    behind the line that froze."""

    optimizer: weakref.ref[Optimizer]
    parameters: tuple[Weak, ...]
    shapes: tuple[str, ...]
    frozen: Frozen
    turn: Mark | None
    backward: Mark
    step: Mark
    fed: set[int]
    times: int = 1


@dataclass
class _Dropped:
    """A parameter that was frozen in the midst of a loss, the last node that used it, how many
    losses were computed of it, and whether a step has found a gradient on it all the same."""

    optimizer: weakref.ref[Optimizer]
    parameter: Weak
    shape: str
    marks: Marks
    user: int
    losses: int = 1
    trained: bool = False


class FrozenSteps:
    """Follows the steps of optimizers whose parameters some line has frozen."""

    def __init__(self, log: EventLog, gradients: Gradients) -> None:
        self._log = log
        self._gradients = gradients
        self._in_vain: dict[int, _InVain] = {}
        self._dropped: dict[int, _Dropped] = {}
        self._trained: set[int] = set()  #: in this cell, by identity
        self._useful: list[Mark] = []  #: the last steps that found a gradient
        self._made = 0  #: when the loss of the last backward was computed, 0 where unknown

    def begin(self) -> None:
        """A cell begins."""
        self._in_vain.clear()
        self._dropped.clear()
        self._trained.clear()
        self._useful.clear()

    def before_backward(self, roots: Iterable[Tensor]) -> None:
        if self._log.frozen:
            nodes = (r.grad_fn for r in roots if r._base is None)
            made = [self._log.maker_of(n._sequence_nr()) for n in nodes if n is not None]
            self._made = max((m.clock for m in made if m is not None), default=0)

    def cleared(self, followed: Followed | None) -> None:
        """Gradients are cleared by an optimizer, or by something else, where it is None."""
        for vain in self._in_vain.values():
            vain.fed = set() if followed is None else vain.fed - {id(followed.optimizer())}

    def after_step(self, followed: Followed, parameters: list[Tensor], mark: Mark) -> None:
        key = id(followed.optimizer())
        if not self._log.frozen:
            self._trained.add(key)
            return
        if self._gradients.dropped or self._dropped:
            self._note_dropped(followed, parameters, mark)
        frozen = self._frozen(parameters)
        if not frozen:
            self._trained.add(key)
            self._in_vain.pop(key, None)
            self._used(key, mark)
        elif key in self._in_vain:
            self._in_vain[key].times += 1
        elif (vain := self._judge(followed, frozen, mark)) is not None:
            self._in_vain[key] = vain

    def _note_dropped(self, followed: Followed, parameters: list[Tensor], mark: Mark) -> None:
        dropped = self._gradients.dropped
        # An optimizer that is given all that there is says nothing of what is to be trained.
        whole = all(p.requires_grad or id(p) in dropped for p in parameters)
        for parameter in parameters:
            key = id(parameter)
            known, user = self._dropped.get(key), dropped.get(key)
            if known is not None:
                known.trained |= parameter.grad is not None
                known.losses += user is not None and user > known.user
                known.user = max(known.user, user or 0)
            elif user is not None and whole and not self._gradients.was_filled(parameter):
                marks = self._marks_of_dropped(parameter, user)
                if marks is not None:
                    marks["step"] = (mark,)
                    own, shape = followed.optimizer, str(list(parameter.shape))
                    self._dropped[key] = _Dropped(own, weak(parameter), shape, marks, user)

    def _marks_of_dropped(self, parameter: Tensor, user: int) -> Marks | None:
        """None where it was not frozen between its use, by the node of this number, and the last
        operation of the loss."""
        frozen, used = self._log.frozen_at(address(parameter), parameter), self._log.maker_of(user)
        if frozen is None or used is None or not used.clock < frozen.clock < self._made:
            return None
        marks: Marks = {"frozen": (Mark(frozen.site, frozen.clock),)}
        marks["used"] = (Mark(used.site, used.clock),)
        return {**marks, "backward": (self._gradients.last_backward,)}

    def _used(self, key: int, mark: Mark) -> None:
        """A step has used gradients of the last backward, or of those before it."""
        last = self._gradients.last_backward
        self._useful = [*self._useful[-_MAX_STEPS:], mark]
        self._in_vain = {
            other: vain
            for other, vain in self._in_vain.items()
            if key not in vain.fed and vain.backward.clock != last.clock
        }

    def _frozen(self, parameters: list[Tensor]) -> dict[int, Frozen]:
        """When each parameter was frozen that was trainable before; {} where one is trainable now,
        and was when the loss was computed, or where one has a gradient."""
        found = {}
        for parameter in parameters:
            known = self._log.frozen_at(address(parameter), parameter)
            if parameter.requires_grad and (known is None or not self._is_late(parameter, known)):
                return {}
            if known is not None:
                found[id(parameter)] = known
        return {} if _have_gradient(parameters) else found

    def _is_late(self, parameter: Tensor, frozen: Frozen) -> bool:
        """Whether it was thawed only when the loss had been computed."""
        born = self._log.birth(address(parameter), parameter)
        if born is None or not born.switched or born.clock < frozen.clock:
            return False
        return 0 < self._made < born.clock

    def _judge(self, followed: Followed, frozen: dict[int, Frozen], mark: Mark) -> _InVain | None:
        """None where the step may well be meant to do nothing."""
        backward = self._gradients.last_backward
        since, own = followed.stepped.clock, id(followed.optimizer())
        if backward.clock <= since or any(m.clock >= backward.clock for m in self._useful):
            return None  # no backward for this step, or not for it alone
        last = max(frozen.values(), key=lambda f: f.clock)
        turns = [m for m in self._useful if last.clock <= m.clock < backward.clock]
        if not turns and own in self._trained:
            return None  # from now on, perhaps
        fed = {
            key
            for other in self._gradients.followed.values()
            if (key := id(other.optimizer())) != own and other.fills[-1:] == [backward]
        }
        weaks = tuple(known.tensor for known in frozen.values())
        shapes = tuple(str(list(p.shape)) for w in weaks if (p := w()) is not None)
        turn = turns[-1] if turns else None
        return _InVain(followed.optimizer, weaks, shapes, last, turn, backward, mark, fed)

    def left_behind(self) -> Iterator[CandidateFault]:
        """A finding for each optimizer that went on in vain to the end of the cell."""
        for vain in self._in_vain.values():
            if vain.fed:
                continue
            marks: Marks = {
                "frozen": (Mark(vain.frozen.site, vain.frozen.clock),),
                "backward": (vain.backward,),
                "step": (vain.step,),
            }
            if vain.turn is not None:
                marks["turn"] = (vain.turn,)
            if (thawed := self._thawed(vain)) is not None:
                marks["thawed"] = (thawed,)
            yield in_vain(vain.optimizer, vain.parameters, vain.shapes, marks, times=vain.times)
        every = [d for d in self._dropped.values() if d.losses > 1 and not d.trained]
        for optimizer in {id(d.optimizer): d.optimizer for d in every}.values():
            lost = [d for d in every if d.optimizer is optimizer]
            shapes = tuple(d.shape for d in lost)
            yield in_vain(optimizer, tuple(d.parameter for d in lost), shapes, lost[0].marks)

    def _thawed(self, vain: _InVain) -> Mark | None:
        """Where the parameters were thawed, too late for the step."""
        alive = [p for w in vain.parameters if (p := w()) is not None]
        births = [self._log.birth(address(p), p) for p in alive]
        late = [b for b in births if b is not None and b.switched and b.clock > vain.frozen.clock]
        return Mark(late[0].site, late[0].clock) if late else None


def in_vain(
    optimizer: weakref.ref[Optimizer],
    parameters: tuple[Weak, ...],
    shapes: tuple[str, ...],
    marks: Marks,
    **more: Any,
) -> CandidateFault:
    """The finding that an optimizer steps these parameters and finds no gradient on them."""
    known = {"optimizer": optimizer, "parameters": parameters, "shapes": shapes}
    evidence = {**known, "count": len(parameters), **more}
    return CandidateFault("frozen-while-stepped", marks, evidence)


def told_with_others(found: list[CandidateFault]) -> list[CandidateFault]:
    """Without an optimizer that is told to hold the wrong parameters, and without a cut that is
    blamed for what was frozen."""
    missed = (s.evidence["optimizer"]() for s in found if s.name == "optimizer-misses-parameters")
    wrong = {id(optimizer) for optimizer in missed if optimizer is not None}
    own = [s for s in found if s.name == "frozen-while-stepped"]
    gone = [s for s in own if id(s.evidence["optimizer"]()) in wrong]
    frozen = {id(p) for s in own for w in s.evidence["parameters"] if (p := w()) is not None}
    cuts = (s for s in found if s.name == "graph-cut")
    gone += [s for s in cuts if frozen and {id(w()) for w in s.evidence["parameters"]} <= frozen]
    return [s for s in found if not any(s is g for g in gone)]


def _have_gradient(parameters: list[Tensor]) -> bool:
    given = [p.grad for p in parameters if p.grad is not None]
    with unseen():
        return not all(map(is_zero, given))
