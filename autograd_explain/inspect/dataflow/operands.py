"""What a computing expression read."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator

from ...arguments import values_given
from . import safe_lookup
from .calls import handed_over
from .cut_kinds import takes_derivative
from .expression import ExprAt
from .names import bound
from .protocol import Slicing
from .reaching_definitions import key_of
from .syntax import inner_expressions, returns


def operands(slicer: Slicing, spot: ExprAt) -> list[ExprAt]:
    """What a computing expression read: receiver, arguments, both sides of an operator, and the
    results of the function that `jacobian` and its like differentiate."""
    node = spot.node
    if isinstance(node, ast.AugAssign):
        earlier = _before_augmented(slicer, spot, node)
        return [*earlier, ExprAt(spot.scope, node.value)]
    if isinstance(node, ast.Call):
        given = [ExprAt(spot.scope, n) for n in _call_operands(slicer, spot, node)]
        return [*given, *_differentiated(slicer, spot)]
    inner = inner_expressions(node)
    return [ExprAt(spot.scope, n) for n in inner]


def _differentiated(slicer: Slicing, spot: ExprAt) -> Iterator[ExprAt]:
    function = spot.argument(0, "func")
    if spot.callable is None or function is None:
        return
    if takes_derivative(slicer.value(spot.callable)):
        scope = handed_over(slicer, spot, function)
        yield from () if scope is None else (ExprAt(scope, n) for n in returns(scope.body))


def _before_augmented(slicer: Slicing, spot: ExprAt, node: ast.AugAssign) -> list[ExprAt]:
    key = key_of(node.target)
    if key is None:
        return []
    at = ExprAt(spot.scope, node)
    return [s for b in slicer.bindings(at, key) for s in bound(b, ()) if s.node is not node]


def _call_operands(slicer: Slicing, spot: ExprAt, node: ast.Call) -> Iterator[ast.expr]:
    if isinstance(node.func, ast.Attribute):
        base = slicer.value(ExprAt(spot.scope, node.func.value))
        if not isinstance(base, (types.ModuleType, type)) and not safe_lookup.is_module(base):
            yield node.func.value
    elif isinstance(node.func, ast.Call):
        yield node.func
    for argument in values_given(node):
        yield argument.value if isinstance(argument, ast.Starred) else argument
