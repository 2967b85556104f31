"""What the user calls the value of an expression: targets, containers, other names of an owner."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import torch

from ...program import expression_of
from ..dataflow import Cut, ExprAt
from ..dataflow.reaching_definitions import Part
from ..scene import Scene


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


def read_with_gradient(scene: Scene, spot: ExprAt) -> dict[str, torch.Tensor | None]:
    """What an expression that computes reads with gradient, outermost first, by its text: `soft`
    and `hard` of `a * soft + b * hard`.  The tensor, where a live name has it."""
    found: dict[str, torch.Tensor | None] = {}
    functions = {id(n.func) for n in ast.walk(spot.node) if isinstance(n, ast.Call)}
    named = (ast.Name, ast.Attribute, ast.Subscript)
    for node in ast.walk(spot.node):
        if isinstance(node, named) and id(node) not in functions:
            part = spot.inside(node)
            if scene.gradient_tracer.trace(part).carries:
                found.setdefault(part.text, scene.slicer.tensor(part))
    return found


def _part_of(target: ast.expr, path: tuple[Part, ...]) -> ast.expr | None:
    """`b` of the target `a, b` for the path (1,)."""
    for part in path:
        if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(part, int):
            break
        if not -len(target.elts) <= part < len(target.elts):
            return None
        target = target.elts[part]
    return None if isinstance(target, (ast.Tuple, ast.List, ast.Starred)) else target


def outer_names(scene: Scene, spot: ExprAt) -> Iterator[str]:
    """`agent.losses` for `self.losses`, where the receiver has a name in the notebook."""
    node = spot.node
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        return
    owner = scene.slicer.value(spot.inside(node.value))
    for name, value in scene.incident.namespace.items():
        if value is owner and not name.startswith("_"):
            yield f"{name}.{node.attr}"


def cut_names(scene: Scene, cut: Cut) -> tuple[str, ...]:
    """What the user calls the value that lost its gradient, the user's last line first."""
    names = [*container_names(scene, cut.spot)]
    trail = cut.trail[:8]
    outside = [s for s in trail if s.function is None]
    for spot in (*outside, *_targets_first(scene, cut, trail)):
        names += [*outer_names(scene, spot), spot.text]
    names += _target_names(scene, cut.spot)
    for _, spot in cut.later:
        names += _target_names(scene, spot)
    return tuple(dict.fromkeys(names))


def names_of_callers(scene: Scene, spot: ExprAt) -> list[ExprAt]:
    """What callers call the value that a function reads as a parameter, the outermost last:
    `pred` for `t` of `to_numpy(pred)`; [] where it is none, or computed in the call."""
    found = list[ExprAt]()
    while isinstance(spot.node, ast.Name) and spot.scope.call is not None:
        given = scene.slicer.argument(spot.scope, spot.node.id)
        if given is None or given.key is None:
            break
        found.append(given)
        spot = given
    return found


def _targets_first(scene: Scene, cut: Cut, trail: tuple[ExprAt, ...]) -> list[ExprAt]:
    """The trail with the names first that the cutting statement itself assigns."""
    targets = set(_target_names(scene, cut.spot))
    return sorted(trail, key=lambda s: s.text not in targets)


def _target_names(scene: Scene, spot: ExprAt) -> Iterator[str]:
    """The targets of the assignment that holds an expression."""
    statement = scene.slicer.statement(spot)
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (ast.unparse(t) for t in targets if not isinstance(t, ast.Tuple))
    yield from stored_names(scene, spot)


def container_names(scene: Scene, spot: ExprAt) -> Iterator[str]:
    """`self.losses` for an expression inside `self.losses.append(…)`."""
    statement = scene.slicer.statement(spot)
    call = getattr(statement, "value", None)
    if isinstance(statement, ast.Expr) and isinstance(call, ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("append", "extend"):
            held = spot.inside(call.func.value)
            yield from (*outer_names(scene, held), held.text)


def name_seen_at(scene: Scene, at: ExprAt | None, tensor: torch.Tensor) -> str:
    """What a live tensor is called at an expression of a running function; "" where nothing is."""
    if at is None:
        return ""
    local = (n for n, value in at.scope.values.items() if value is tensor and n.isidentifier())
    named = (n.name for n in scene.names.tensors if n.tensor is tensor)
    return next((n for n in (*local, *named) if _means(scene, at, n, tensor)), "")


def _means(scene: Scene, at: ExprAt, name: str, tensor: torch.Tensor) -> bool:
    node = expression_of(name)
    return node is not None and scene.slicer.value(ExprAt(at.scope, node)) is tensor
