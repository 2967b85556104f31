"""What kept an input out of a result's graph although the result was computed from it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch

from autograd_explain.inspect.dataflow import CutKind, ExprAt, Off
from autograd_explain.inspect.dataflow.cut_kinds import cut_of
from autograd_explain.inspect.dataflow.grad_mode import OffBy, switched_off_around
from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.facts.expressions import computation, expression_at
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Event, What
from autograd_explain.program import called_name


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
    of calls on one another (`x.detach().numpy()`) the whole.  Not what reads the input's values by
    arrays of NumPy's alone: it has no graph to cut."""
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
    left = {id(c.spot.node) for c in found if c.way is CutKind.NUMPY}
    return tuple(c for c in found if _reads(scene, c.spot, goal, left - {id(c.spot.node)}))


def chooses(scene: Scene, cut: CutBetween) -> bool:
    """Whether a cast to integers makes what rows are chosen by, `self.words(ids.long())`: without
    it there is nothing to choose with."""
    if cut.kind is not CutKind.INTEGER or cut.off is not None:
        return False
    statement, body = scene.slicer.statement(cut.spot), cut.spot.scope.body
    own = isinstance(statement, ast.Assign) and statement.value is cut.spot.node
    targets = statement.targets if own and isinstance(statement, ast.Assign) else []
    names = {ast.unparse(t) for t in targets}
    reads = (n for n in ast.walk(body) if isinstance(n, ast.Name) and n.id in names)
    spots = (cut.spot, *(cut.spot.inside(n) for n in reads))
    return any(_is_index(scene, spot) for spot in spots)


def _is_index(scene: Scene, spot: ExprAt) -> bool:
    outer = spot.scope.source.parents.get(spot.node)
    if isinstance(outer, ast.Subscript):
        return outer.slice is spot.node or _is_index(scene, spot.inside(outer))
    if not isinstance(outer, ast.Call) or outer.func is spot.node:
        return False
    called = spot.inside(outer.func)
    value = scene.slicer.value(called)
    if called_name(outer) in _CHOOSING or isinstance(value, torch.nn.Embedding):
        return True
    # One of several that a list of modules was made of.
    made = (node for maker in scene.slicer.makers(called) for node in ast.walk(maker.node))
    return any(called_name(node) in _LOOKING_UP for node in made)


_CHOOSING = frozenset("embedding one_hot gather index_select take take_along_dim".split())
_LOOKING_UP = frozenset({"Embedding", "EmbeddingBag"})


def copied_modules(
    scene: Scene, roots: list[ExprAt], tensor: torch.Tensor
) -> tuple[CutBetween, ...]:
    """The copies of a module with this parameter that the results were computed with:
    `fast = copy.deepcopy(net)`, whose parameters are new leaves."""
    slicer, found = scene.slicer, dict[int, CutBetween]()
    spots = (s for root in roots for s in (*slicer.makers(root), *computation(scene, root)))
    called = (s.callable for s in spots if isinstance(s.node, ast.Call))
    for made in (m for function in called if function is not None for m in slicer.makers(function)):
        given = made.argument(0, "x") if made.called == "deepcopy" else None
        module = None if given is None else _live(scene, given)
        if isinstance(module, torch.nn.Module) and any(p is tensor for p in module.parameters()):
            found.setdefault(id(made.node), CutBetween(CutKind.COPY, made))
    return tuple(found.values())


def cuts_at(scene: Scene, seen: Sequence[TraceEvent]) -> tuple[CutBetween, ...]:
    """Those calls, of which it was seen that the values left the graph there, that say so."""
    spots = (None if m.inside else expression_at(scene, m.place) for m in seen)
    found = (None if spot is None else _cut(scene, spot) for spot in spots)
    return tuple(cut for cut in found if cut is not None)


def _live(scene: Scene, spot: ExprAt) -> object:
    """The object an expression names; of a parameter, what the caller gave for it."""
    value, slicer = scene.slicer.value(spot), scene.slicer
    while value is MISSING and isinstance(spot.node, ast.Name):
        given = slicer.argument(spot.scope, spot.node.id)
        if given is None:
            return MISSING
        value, spot = slicer.value(given), given
    return value


def _holds(outer: ExprAt, inner: ExprAt) -> bool:
    return any(node is inner.node for node in ast.walk(outer.node))


def _cut(scene: Scene, spot: ExprAt) -> CutBetween | None:
    slicer = scene.slicer
    kind = cut_of(slicer, spot)
    if kind is not None:
        return CutBetween(kind, spot)
    off = switched_off_around(slicer, spot)
    return None if off is None else CutBetween(CutKind.NO_GRAD, spot, off)


def _reads(scene: Scene, spot: ExprAt, goal: set[int], ends: Collection[int] = ()) -> bool:
    """Whether the input is part of what an expression was computed from, on a way that `ends` do
    not close."""
    slicer = scene.slicer
    direct = {id(m.node) for o in slicer.operands(spot) for m in slicer.makers(o)}
    computed = computation(scene, spot, ends=ends)
    return bool(goal & direct) or any(id(s.node) in goal for s in computed)


def cut_event(scene: Scene, cut: CutBetween) -> Event:
    """The event that blames a cut: the expression, or what had turned recording off."""
    if cut.off is None:
        return scene.event_at(What.CAUSE, cut.spot)
    place = scene.slicer.place_of(cut.off.scope, cut.off.node)
    return Event(What.CAUSE, place)
