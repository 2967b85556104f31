"""Where the failure's tensor came from, for causes that are no in-place write.

Shared by the knowledge entries: the expression at which a failure surfaced, and places and events
made from expressions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

import torch

from ...model import Event, Place, Relation, What
from ..dataflow import ExprAt, Slicer, failing_spots
from ..dataflow.reaching_definitions import Part, head_of
from ..scene import Scene


def surfaced(scene: Scene) -> ExprAt | None:
    """The expression that the innermost of the user's frames was evaluating."""
    spots = failing_spots(scene.slicer)
    return spots[0] if spots else None


def inside(spot: ExprAt, node: ast.expr) -> ExprAt:
    """Another expression of the same scope."""
    return ExprAt(spot.scope, node)


def attribute_read(scene: Scene, attr: str) -> ExprAt | None:
    """`x` of the failing `x.attr`, where the failing line reads exactly one such attribute."""
    slicer = scene.slicer
    spot = surfaced(scene)
    if spot is None:
        return None
    if isinstance(spot.node, ast.Attribute) and spot.node.attr == attr:
        return inside(spot, spot.node.value)
    statement = slicer.statement(spot)
    found = [n for n in _reads(statement, attr)] if statement is not None else []
    return inside(spot, found[0]) if len({ast.unparse(n) for n in found}) == 1 else None


def _reads(statement: ast.stmt, attr: str) -> Iterator[ast.expr]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and node.attr == attr:
            yield node.value
        named = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr"
        if named and isinstance(node, ast.Call) and len(node.args) > 1:
            constant = node.args[1]
            if isinstance(constant, ast.Constant) and constant.value == attr:
                yield node.args[0]


def method_call(scene: Scene, name: str) -> ExprAt | None:
    """`x` of the failing `x.name(…)`."""
    spot = surfaced(scene)
    if spot is None:
        return None
    statement = scene.slicer.statement(spot)
    calls = [spot.node, *(ast.walk(statement) if statement is not None else ())]
    for node in calls:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == name:
                return inside(spot, node.func.value)
    return None


def place_of(scene: Scene, spot: ExprAt | None) -> Place | None:
    return None if spot is None else scene.slicer.place(spot)


def places_of(scene: Scene, spots: Iterable[ExprAt]) -> tuple[Place, ...]:
    """The places of expressions, for what a cause's rewrites need."""
    return tuple(p for p in (place_of(scene, s) for s in spots) if p is not None)


def event_at(
    scene: Scene,
    what: What,
    spot: ExprAt,
    op: str | None = None,
    relation: Relation | None = None,
) -> Event:
    """An event at an expression; it was concluded from the source."""
    chain: list[Place] = []
    call = spot.scope.call
    while call is not None and len(chain) < 10:
        chain.append(scene.slicer.place(call))
        call = call.scope.call
    place = place_of(scene, spot)
    return Event(what, place, op, chain=tuple(reversed(chain)), relation=relation)


def stored_names(scene: Scene, spot: ExprAt) -> tuple[str, ...]:
    """The names a statement gives to the value of an expression (`self.images`, `h`), or to the
    part of it that `spot.path` leads to."""
    statement = scene.slicer.statement(spot)
    if isinstance(statement, ast.Assign) and statement.value is spot.node:
        found = [_part_of(t, spot.path) for t in statement.targets]
        return tuple(ast.unparse(t) for t in found if t is not None)
    if isinstance(statement, ast.AnnAssign) and statement.value is spot.node:
        return (ast.unparse(statement.target),)
    if isinstance(statement, ast.AugAssign):
        return (ast.unparse(statement.target),)
    return ()


def _part_of(target: ast.expr, path: tuple[Part, ...]) -> ast.expr | None:
    """`b` of the target `a, b` for the path (1,)."""
    for part in path:
        if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(part, int):
            break
        if not -len(target.elts) <= part < len(target.elts):
            return None
        target = target.elts[part]
    return None if isinstance(target, (ast.Tuple, ast.List, ast.Starred)) else target


def computation(scene: Scene, root: ExprAt, limit: int = 400) -> Iterator[ExprAt]:
    """The expressions that `root` was computed from, nearest first, `root` itself left out."""
    slicer = scene.slicer
    pending, seen = _read_by(slicer, root), {id(root.node)}
    while pending and len(seen) < limit:
        spot = pending.pop(0)
        for maker in slicer.makers(spot):
            if id(maker.node) not in seen:
                seen.add(id(maker.node))
                yield maker
                pending += slicer.operands(maker)


def _read_by(slicer: Slicer, root: ExprAt) -> list[ExprAt]:
    """A name stands for what made it, a computing expression for what it read."""
    made = [m for m in slicer.makers(root) if m.node is not root.node]
    return [root] if made else slicer.operands(root)


def outer_names(scene: Scene, spot: ExprAt) -> Iterator[str]:
    """`agent.losses` for `self.losses`, where the receiver has a name in the notebook."""
    node = spot.node
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        return
    owner = scene.slicer.value(inside(spot, node.value))
    for name, value in scene.incident.namespace.items():
        if value is owner and not name.startswith("_"):
            yield f"{name}.{node.attr}"


def name_seen_at(scene: Scene, at: ExprAt | None, tensor: torch.Tensor) -> str:
    """What a live tensor is called at an expression of a running function; "" where nothing is."""
    if at is None:
        return ""
    local = (n for n, value in at.scope.values.items() if value is tensor and n.isidentifier())
    named = (n.name for n in scene.names.tensors if n.tensor is tensor)
    return next((n for n in (*local, *named) if _means(scene, at, n, tensor)), "")


def _means(scene: Scene, at: ExprAt, name: str, tensor: torch.Tensor) -> bool:
    try:
        node = ast.parse(name, mode="eval").body
    except SyntaxError:
        return False
    return scene.slicer.value(ExprAt(at.scope, node)) is tensor


def live_spot(scene: Scene, tensor: torch.Tensor) -> ExprAt | None:
    """A live name of a tensor, as an expression at the failing line that can see it."""
    slicer = scene.slicer
    spots = failing_spots(slicer)
    for name in scene.names.of(tensor):
        try:
            node = ast.parse(name, mode="eval").body
        except SyntaxError:
            continue
        head = head_of(name)
        at = next((s for s in reversed(spots) if head in s.scope.values), None)
        if at is not None:
            for part in ast.walk(node):
                ast.copy_location(part, at.node)
            return slicer.imagined(at, node)
    return None
