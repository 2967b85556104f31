"""Where the failure's tensor came from, for causes that are no in-place write.

Shared by the knowledge entries: the walker of a scene, the expression at which it surfaced, and
places and events made from expressions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

import torch

from ..model import Event, Place, What
from .scene import Scene
from .source_walk import GradientTracer, Spot, Walker, failing_spots
from .source_walk.bindings import Part, head_of


def walker_of(scene: Scene) -> Walker:
    """The scene's one walker: what it has parsed and followed is kept with the scene."""
    found: Walker | None = scene.__dict__.get("_walker")
    if found is None:
        found = scene.__dict__["_walker"] = Walker(scene.program, scene.incident)
    return found


def tracer_of(scene: Scene) -> GradientTracer:
    """The scene's tracer, which prefers what the user's optimizers update."""
    found: GradientTracer | None = scene.__dict__.get("_tracer")
    if found is None:
        held = [
            p
            for _, optimizer in scene.names.optimizers()
            for group in optimizer.param_groups
            for p in group["params"]
        ]
        found = scene.__dict__["_tracer"] = GradientTracer(walker_of(scene), held)
    return found


def surfaced(scene: Scene) -> Spot | None:
    """The expression that the innermost of the user's frames was evaluating."""
    spots = failing_spots(walker_of(scene))
    return spots[0] if spots else None


def inside(spot: Spot, node: ast.expr) -> Spot:
    """Another expression of the same scope."""
    return Spot(spot.scope, node)


def attribute_read(scene: Scene, attr: str) -> Spot | None:
    """`x` of the failing `x.attr`, where the failing line reads exactly one such attribute."""
    walker = walker_of(scene)
    spot = surfaced(scene)
    if spot is None:
        return None
    if isinstance(spot.node, ast.Attribute) and spot.node.attr == attr:
        return inside(spot, spot.node.value)
    statement = walker.statement(spot)
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


def method_call(scene: Scene, name: str) -> Spot | None:
    """`x` of the failing `x.name(…)`."""
    spot = surfaced(scene)
    if spot is None:
        return None
    statement = walker_of(scene).statement(spot)
    calls = [spot.node, *(ast.walk(statement) if statement is not None else ())]
    for node in calls:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == name:
                return inside(spot, node.func.value)
    return None


def place_of(scene: Scene, spot: Spot | None) -> Place | None:
    return None if spot is None else walker_of(scene).place(spot)


def places_of(scene: Scene, spots: Iterable[Spot]) -> tuple[Place, ...]:
    """The places of expressions, for what a cause's rewrites need."""
    return tuple(p for p in (place_of(scene, s) for s in spots) if p is not None)


def places_at(scene: Scene, **spots: Spot | None) -> dict[str, tuple[Place, ...]]:
    """`Finding.places` of one expression each; one that is not known is left out."""
    found = {name: places_of(scene, [s]) for name, s in spots.items() if s is not None}
    return {name: places for name, places in found.items() if places}


def event_at(scene: Scene, what: What, spot: Spot, op: str | None = None) -> Event:
    """An event at an expression; it was concluded from the source."""
    chain: list[Place] = []
    call = spot.scope.call
    while call is not None and len(chain) < 10:
        chain.append(walker_of(scene).place(call))
        call = call.scope.call
    return Event(what, place_of(scene, spot), op, chain=tuple(reversed(chain)))


def stored_names(scene: Scene, spot: Spot) -> tuple[str, ...]:
    """The names a statement gives to the value of an expression (`self.images`, `h`), or to the
    part of it that `spot.path` leads to."""
    statement = walker_of(scene).statement(spot)
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


def computation(scene: Scene, root: Spot, limit: int = 400) -> Iterator[Spot]:
    """The expressions that `root` was computed from, nearest first, `root` itself left out."""
    walker = walker_of(scene)
    pending, seen = _read_by(walker, root), {id(root.node)}
    while pending and len(seen) < limit:
        spot = pending.pop(0)
        for maker in walker.makers(spot):
            if id(maker.node) not in seen:
                seen.add(id(maker.node))
                yield maker
                pending += walker.operands(maker)


def _read_by(walker: Walker, root: Spot) -> list[Spot]:
    """A name stands for what made it, a computing expression for what it read."""
    made = [m for m in walker.makers(root) if m.node is not root.node]
    return [root] if made else walker.operands(root)


def outer_names(scene: Scene, spot: Spot) -> Iterator[str]:
    """`agent.losses` for `self.losses`, where the receiver has a name in the notebook."""
    node = spot.node
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        return
    owner = walker_of(scene).value(inside(spot, node.value))
    for name, value in scene.incident.namespace.items():
        if value is owner and not name.startswith("_"):
            yield f"{name}.{node.attr}"


def name_seen_at(scene: Scene, at: Spot | None, tensor: torch.Tensor) -> str:
    """What a live tensor is called at an expression of a running function; "" where nothing is."""
    if at is None:
        return ""
    local = (n for n, value in at.scope.values.items() if value is tensor and n.isidentifier())
    named = (n.name for n in scene.names.tensors if n.tensor is tensor)
    return next((n for n in (*local, *named) if _means(scene, at, n, tensor)), "")


def _means(scene: Scene, at: Spot, name: str, tensor: torch.Tensor) -> bool:
    try:
        node = ast.parse(name, mode="eval").body
    except SyntaxError:
        return False
    return walker_of(scene).value(Spot(at.scope, node)) is tensor


def live_spot(scene: Scene, tensor: torch.Tensor) -> Spot | None:
    """A live name of a tensor, as an expression at the failing line that can see it."""
    walker = walker_of(scene)
    spots = failing_spots(walker)
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
            return walker.imagined(at, node)
    return None
