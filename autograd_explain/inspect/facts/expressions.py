"""Expressions behind a failure: what the failing line reads, and what that was computed from."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

import torch

from ...model import Place
from ...program import expression_of
from ..dataflow import ExprAt, Slicer, failing_spots
from ..dataflow.reaching_definitions import head_of
from ..scene import Scene


def attribute_read(scene: Scene, attr: str) -> ExprAt | None:
    """`x` of the failing `x.attr`, where the failing line reads one such attribute; of several
    reads the one of a tensor that has no gradient."""
    slicer = scene.slicer
    spot = scene.surfaced
    if spot is None:
        return None
    if isinstance(spot.node, ast.Attribute) and spot.node.attr == attr:
        return spot.inside(spot.node.value)
    statement = slicer.statement(spot)
    found = {} if statement is None else {ast.unparse(n): n for n in _reads(statement, attr)}
    spots = [spot.inside(node) for node in found.values()]
    if len(spots) > 1:
        spots = [s for s in spots if not _has_gradient(slicer.tensor(s))]
    return spots[0] if len(spots) == 1 else None


def _has_gradient(tensor: torch.Tensor | None) -> bool:
    return tensor is not None and tensor.is_leaf and tensor.grad is not None


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
    spot = scene.surfaced
    if spot is None:
        return None
    statement = scene.slicer.statement(spot)
    calls = [spot.node, *(ast.walk(statement) if statement is not None else ())]
    for node in calls:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == name:
                return spot.inside(node.func.value)
    return None


def computation(
    scene: Scene, root: ExprAt, limit: int = 400, ends: Collection[int] = ()
) -> Iterator[ExprAt]:
    """The expressions that `root` was computed from, nearest first, `root` itself left out; nothing
    of what those in `ends` (the ids of nodes) were computed from."""
    slicer = scene.slicer
    pending, seen = _read_by(slicer, root), {id(root.node)}
    while pending and len(seen) < limit:
        spot = pending.pop(0)
        for maker in slicer.makers(spot):
            if id(maker.node) not in seen:
                seen.add(id(maker.node))
                yield maker
                pending += [] if id(maker.node) in ends else slicer.operands(maker)


def _read_by(slicer: Slicer, root: ExprAt) -> list[ExprAt]:
    """A name stands for what made it, a computing expression for what it read."""
    made = [m for m in slicer.makers(root) if m.node is not root.node]
    return [root] if made else slicer.operands(root)


def expression_at(scene: Scene, place: Place | None) -> ExprAt | None:
    """The expression with exactly the range of a place."""
    source, node = scene.program.source_at(place), scene.program.expression_at(place)
    return None if source is None or node is None else scene.slicer.at(source, node)


def live_spot(scene: Scene, tensor: torch.Tensor) -> ExprAt | None:
    """A live name of a tensor, as an expression at the failing line that can see it."""
    slicer = scene.slicer
    spots = failing_spots(slicer)
    for name in scene.names.of(tensor):
        node, head = expression_of(name), head_of(name)
        at = next((s for s in reversed(spots) if head in s.scope.values), None)
        if node is not None and at is not None:
            return slicer.imagined(at, node)
    return None
