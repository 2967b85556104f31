"""What kept an input out of a result's graph although the result was computed from it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ..model import Event, What
from .origin import computation, event_at, inside, walker_of
from .scene import Scene
from .source_walk import CutKind, Off, Spot
from .source_walk.grad_mode import switched_off_around
from .source_walk.operations import cut_of


@dataclass(frozen=True, eq=False)
class Between:
    """An expression that read the input and passed no gradient on.

    With `off` the operation itself would have: recording was off around it.
    """

    kind: CutKind
    spot: Spot
    off: Off | None = None


def cuts_between(scene: Scene, roots: list[Spot], source: Spot) -> tuple[Between, ...]:
    """The cuts between an input and the results computed from it, nearest to the results first;
    of calls on one another (`x.detach().numpy()`) the whole."""
    walker = walker_of(scene)
    goal = {id(m.node) for m in walker.makers(source)}
    found: list[Between] = []
    for root in roots:
        for spot in (*walker.makers(root), *computation(scene, root)):
            if id(spot.node) in goal or any(_holds(f.spot, spot) for f in found):
                continue
            cut = _cut(scene, spot)
            if cut is not None and _reads(scene, spot, goal):
                found.append(cut)
    return tuple(found)


def _holds(outer: Spot, inner: Spot) -> bool:
    return any(node is inner.node for node in ast.walk(outer.node))


def _cut(scene: Scene, spot: Spot) -> Between | None:
    walker = walker_of(scene)
    called = spot.node.func if isinstance(spot.node, ast.Call) else None
    function = None if called is None else walker.value(inside(spot, called))
    kind = cut_of(spot.node, spot.path, function)
    if kind is not None:
        return Between(kind, spot)
    off = switched_off_around(walker, spot)
    return None if off is None else Between(CutKind.NO_GRAD, spot, off)


def _reads(scene: Scene, spot: Spot, goal: set[int]) -> bool:
    """Whether the input is part of what an expression was computed from."""
    walker = walker_of(scene)
    direct = {id(m.node) for o in walker.operands(spot) for m in walker.makers(o)}
    return bool(goal & direct) or any(id(s.node) in goal for s in computation(scene, spot))


def cut_event(scene: Scene, cut: Between) -> Event:
    """The event that blames a cut: the expression, or what had turned recording off."""
    if cut.off is None:
        return event_at(scene, What.CAUSE, cut.spot, cut.kind.value)
    place = walker_of(scene).place_of(cut.off.scope, cut.off.node)
    return Event(What.CAUSE, place, cut.off.by.value)
