"""Parameters that steps found a gradient on, and from one step on never again.

That is no fault by itself: parts of a model are trained in turn.  It is one where the parameters'
values have left the graph and came back into the same loss: adapters that were merged into the
weights for an evaluation, and are merged still; a value that is computed once and kept without its
graph, or kept by a library's object, which hands it out without.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from types import CodeType

from torch import Tensor

from ...inspect.facts.memoization import remembered
from ...program import Program
from ..observe.call_sites import CallFrame, CallSites
from ..observe.code_positions import spot_of
from ..observe.tensor_facts import is_zero, unseen
from .finding import CandidateFault, Mark, Marks, Weak, weak
from .graph_cuts import Cuts, CutSite
from .unused_gradients import Followed, Gradients


@dataclass
class _Course:
    """How the parameters of an optimizer fare: `had` are those that ever had a gradient, `trained`
    the last step at which all of these had one, `backward` the backward before it."""

    followed: Followed
    had: set[int] = field(default_factory=set)
    trained: Mark | None = None
    backward: Mark | None = None
    judged: bool = False  #: a step without a gradient came, and was looked at
    stopped: _Stopped | None = None


@dataclass
class _Stopped:
    """The first step without a gradient; `cuts` are where the values left the graph, `earlier` is
    the last backward that gave one."""

    parameters: dict[int, Weak]
    shapes: tuple[str, ...]
    cuts: tuple[CutSite, ...]
    earlier: Mark
    backward: Mark
    step: Mark


class StoppedGradients:
    """Follows the steps of each optimizer."""

    def __init__(self, gradients: Gradients, cuts: Cuts) -> None:
        self._gradients = gradients
        self._cuts = cuts
        self._courses: dict[int, _Course] = {}
        self._begun = 0  #: when the cell did

    def begin(self, clock: int) -> None:
        """A cell begins."""
        self._begun = clock
        alive = (c for c in self._courses.values() if c.followed.optimizer() is not None)
        self._courses = {id(c.followed): c for c in alive}

    def after_step(self, followed: Followed, parameters: list[Tensor], mark: Mark) -> None:
        course = self._courses.setdefault(id(followed), _Course(followed))
        backward = self._gradients.last_backward
        zeros = self._zeros(course, parameters)
        without = [p for p in parameters if p.grad is None or id(p) in zeros]
        lacking = {id(p): p for p in without if p.requires_grad}
        stopped = course.had & lacking.keys()
        if not stopped:
            if len(parameters) - len(without) > len(course.had):  # mostly all have, all the time
                course.had |= {id(p) for p in parameters if p.grad is not None}
            course.trained, course.backward = mark, backward
            course.judged, course.stopped = False, None
        elif not course.judged:
            lost = [p for key, p in lacking.items() if key in stopped]
            course.judged, course.stopped = True, self._stopped(lost, course, mark)
        elif course.stopped is not None and course.stopped.step.clock <= self._begun:
            course.stopped.backward, course.stopped.step = backward, mark  # and still so

    def _zeros(self, course: _Course, parameters: list[Tensor]) -> set[int]:
        """Those whose gradient is what `zero_grad(set_to_none=False)` has left: asked where values
        of theirs went past the graph into the last loss, and there only if the first one's is."""
        since, last = course.trained, self._gradients.last_backward
        reached = (self._cuts.cuts[s] for s, b in self._cuts.reached.items() if b == last)
        recent = [cut.above for cut in reached if since is not None and cut.clock >= since.clock]
        if not recent:
            return set()
        asked = (p for p in parameters if any(id(p) in above for above in recent))
        found = takewhile(lambda p: p.grad is not None and is_zero(p.grad), asked)
        with unseen():
            return {id(p) for p in found}

    def _stopped(self, lost: list[Tensor], course: _Course, mark: Mark) -> _Stopped | None:
        """None where no value of theirs came into the loss past the graph."""
        since, earlier = course.trained, course.backward
        if since is None or earlier is None:
            return None
        cuts = {
            cut.site: cut
            for parameter in lost
            for cut in self._cuts.above(parameter, since.clock)
            if not self._trains(cut)
        }
        kept = [p for p in lost if any(id(p) in cut.above for cut in cuts.values())]
        if not kept:
            return None
        shapes = tuple(str(list(p.shape)) for p in kept)
        weaks = {id(p): weak(p) for p in kept}
        backward = self._gradients.last_backward
        return _Stopped(weaks, shapes, (*cuts.values(),), earlier, backward, mark)

    def _trains(self, cut: CutSite) -> bool:
        """Whether what left is the value of what is trained now, as a copied weight is."""
        if cut.leaf:
            return True
        known = ((held(), sites) for held, sites, _ in list(self._cuts.traces.values()))
        return any(
            tensor is not None and cut.site in sites and is_trained_leaf(tensor)
            for tensor, sites in known
        )

    def left_behind(self) -> Iterator[CandidateFault]:
        """A finding for each optimizer whose parameters got no gradient to the end of the cell."""
        for course in self._courses.values():
            stopped = course.stopped
            if stopped is None or stopped.step.clock <= self._begun:
                continue
            marks: Marks = {
                "cut": tuple(Mark(cut.site, cut.clock) for cut in stopped.cuts),
                "backward": (stopped.backward,),
                "step": (stopped.step,),
                "last_backward": (stopped.earlier,),
            }
            evidence = {
                "optimizer": course.followed.optimizer,
                "parameters": tuple(stopped.parameters.values()),
                "shapes": stopped.shapes,
                "count": len(stopped.parameters),
                "handed_out": frozenset(cut.site for cut in stopped.cuts if _is_old(cut)),
            }
            yield CandidateFault("gradient-stopped", marks, evidence)


def is_trained_leaf(tensor: Tensor) -> bool:
    """Of a view its history is not asked for."""
    return tensor.requires_grad and tensor._base is None and tensor.grad_fn is None


def _is_old(cut: CutSite) -> bool:
    """Whether only what was computed before an earlier backward has left there."""
    return cut.way in ("detach", "data") and not cut.fresh


def left_so(suspect: CandidateFault, sites: CallSites, program: Program) -> CandidateFault | None:
    """A gradient that stopped, told by the cuts whose values some object keeps: a statement behind
    the lines that led to the backward drops a result, or writes in place; or a function computes
    a value once and hands out the kept one from then on, or a library detaches an old one.  A value
    that goes from one expression to the next, as a detached one does, is cut off for this loss on
    purpose.

    None where there is no such cut, or where the gradient came from a backward at another
    statement, wherever that is called from."""
    if suspect.name != "gradient-stopped":
        return suspect
    steps = {role: sites.all[suspect.marks[role][0].site].steps for role in _BACKWARDS}
    if len({_at(found[0]) for found in steps.values() if found}) > 1:
        return None
    led = [*reversed(steps["backward"])]
    since = suspect.marks["last_backward"][0].clock
    kept = [
        mark
        for mark in suspect.marks["cut"]
        if (
            _is_kept(sites.all[mark.site].steps, led, program)
            if mark.clock > since
            else _is_remembered(sites.all[mark.site].steps, program)
        )
    ]
    if kept:
        evidence = {k: v for k, v in suspect.evidence.items() if k != "handed_out"}
    else:
        old, evidence = suspect.evidence["handed_out"], dict(suspect.evidence)
        late = (mark for mark in suspect.marks["cut"] if mark.clock > since and mark.site in old)
        kept = [mark for mark in late if sites.all[mark.site].below]
    marks = {**suspect.marks, "cut": tuple(kept)}
    return replace(suspect, marks=marks, evidence=evidence) if kept else None


def _is_kept(steps: Sequence[CallFrame], led: Sequence[CallFrame], program: Program) -> bool:
    outer = [*reversed(steps)]
    pairs = zip(map(_at, outer), map(_at, led), strict=False)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    spots = [spot for step in outer[common:] if (spot := spot_of(program, step)) is not None]
    # `net(x).sum().backward()` and `train(lambda: net(x))` are of the loss itself.
    loss = [spot.statement for step in led if (spot := spot_of(program, step)) is not None]
    apart = (s.statement for s in spots if all(s.statement is not own for own in loss))
    return any(isinstance(statement, (ast.Expr, ast.AugAssign)) for statement in apart)


def _is_remembered(steps: Sequence[CallFrame], program: Program) -> bool:
    spots = [spot_of(program, step) for step in reversed(steps)]
    path = tuple(spot.place(whole=False) for spot in spots if spot is not None)
    return remembered(program, path[-1:]) is not None


_BACKWARDS = ("backward", "last_backward")


def _at(step: CallFrame) -> tuple[CodeType, int]:
    return step.code, step.instruction
