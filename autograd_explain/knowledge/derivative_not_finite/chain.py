"""The roots before an operation at fault: once its operand is masked, they are the next at 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Place
from autograd_explain.program import called_name

from .operation import Operation, operands

_MAX_STEPS = 12


@dataclass(frozen=True)
class Root:
    """A square root, and what it is taken of."""

    place: Place
    operand: Place


def roots_before(scene: Scene, found: Operation) -> tuple[Root, ...]:
    """The roots that the operand's value was computed with, nearest first, where the source
    leaves one way back only; those in the operand itself are left out."""
    source = scene.program.source_at(found.place)
    if source is None or found.operand is None:
        return ()
    start = scene.slicer.at(source, found.operand)
    return tuple(dict.fromkeys(_before(scene, start, [start])))


def place_to_mask(scene: Scene, found: Operation) -> Place | None:
    """The operand at fault; of one that is itself a root, what that is taken of."""
    source = scene.program.source_at(found.place)
    inner = None if found.operand is None else _under_root(found.operand)
    if source is None or inner is None:
        return found.operand_place
    return source.place(inner.lineno, None, inner)


def _before(scene: Scene, start: ExprAt, pending: list[ExprAt]) -> Iterator[Root]:
    inside = set(ast.walk(start.node))
    for _ in range(_MAX_STEPS):
        if not pending:
            return
        makers = scene.slicer.makers(pending.pop(0))
        if len(makers) != 1:
            continue
        spot = makers[0]
        operand = _under_root(spot.node)
        if operand is not None and spot.node not in inside:
            yield Root(scene.slicer.place(spot), scene.slicer.place(ExprAt(spot.scope, operand)))
        if isinstance(spot.node, (ast.BinOp, ast.UnaryOp, ast.Call)):
            pending += [ExprAt(spot.scope, n) for n in operands(spot.node)]


def _under_root(node: ast.AST) -> ast.expr | None:
    """`x` of `torch.sqrt(x)`, `x.pow(0.5)` and `x ** 0.5`; None where a number keeps it from 0."""
    given = operands(node)
    root = isinstance(node, ast.Call) and called_name(node) == "sqrt"
    power = isinstance(node, ast.Call) and called_name(node) == "pow"
    if power or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)):
        root = len(given) == 2 and ast.unparse(given[1]) in ("0.5", "1 / 2")
    if not root or not given or _is_kept_from_zero(given[0]):
        return None
    return given[0]


def _is_kept_from_zero(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return called_name(node) in ("clamp", "clamp_min", "maximum", "where")
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and _adds_number(node)


def _adds_number(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(isinstance(n, ast.Constant) or "eps" in ast.unparse(n).lower() for n in sides)
