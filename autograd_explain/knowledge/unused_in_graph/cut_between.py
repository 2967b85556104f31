"""What kept an input out of a result's graph although the result was computed from it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from autograd_explain.inspect.dataflow import CutKind, ExprAt, Off
from autograd_explain.inspect.dataflow.cut_kinds import cut_of
from autograd_explain.inspect.dataflow.grad_mode import OffBy, switched_off_around
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Event, What


@dataclass(frozen=True, eq=False)
class CutBetween:
    """An expression that read the input and passed no gradient on.

    With `off` the operation itself would have: recording was off around it.
    """

    kind: CutKind
    spot: ExprAt
    off: Off | None = None

    @property
    def way(self) -> CutKind | OffBy:
        """How it cut."""
        return self.kind if self.off is None else self.off.by


def cuts_between(scene: Scene, roots: list[ExprAt], source: ExprAt) -> tuple[CutBetween, ...]:
    """The cuts between an input and the results computed from it, nearest to the results first;
    of calls on one another (`x.detach().numpy()`) the whole."""
    slicer = scene.slicer
    goal = {id(m.node) for m in slicer.makers(source)}
    found: list[CutBetween] = []
    for root in roots:
        for spot in (*slicer.makers(root), *computation(scene, root, ends=goal)):
            if id(spot.node) in goal or any(_holds(f.spot, spot) for f in found):
                continue
            cut = _cut(scene, spot)
            if cut is not None and _reads(scene, spot, goal):
                found.append(cut)
    return tuple(found)


def _holds(outer: ExprAt, inner: ExprAt) -> bool:
    return any(node is inner.node for node in ast.walk(outer.node))


def _cut(scene: Scene, spot: ExprAt) -> CutBetween | None:
    slicer = scene.slicer
    kind = cut_of(slicer, spot)
    if kind is not None:
        return CutBetween(kind, spot)
    off = switched_off_around(slicer, spot)
    return None if off is None else CutBetween(CutKind.NO_GRAD, spot, off)


def _reads(scene: Scene, spot: ExprAt, goal: set[int]) -> bool:
    """Whether the input is part of what an expression was computed from."""
    slicer = scene.slicer
    direct = {id(m.node) for o in slicer.operands(spot) for m in slicer.makers(o)}
    return bool(goal & direct) or any(id(s.node) in goal for s in computation(scene, spot))


def cut_event(scene: Scene, cut: CutBetween) -> Event:
    """The event that blames a cut: the expression, or what had turned recording off."""
    if cut.off is None:
        return scene.event_at(What.CAUSE, cut.spot)
    place = scene.slicer.place_of(cut.off.scope, cut.off.node)
    return Event(What.CAUSE, place)
