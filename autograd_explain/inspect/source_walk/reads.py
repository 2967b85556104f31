"""What a computing expression read."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING

from . import live
from .bindings import key_of
from .names import bound
from .spots import Spot
from .syntax import inner_expressions

if TYPE_CHECKING:
    from .walker import Walker


def operands(walker: Walker, spot: Spot) -> list[Spot]:
    """What a computing expression read: receiver, arguments, both sides of an operator."""
    node = spot.node
    if isinstance(node, ast.AugAssign):
        earlier = _before_augmented(walker, spot, node)
        return [*earlier, Spot(spot.scope, node.value)]
    if isinstance(node, ast.Call):
        return [Spot(spot.scope, n) for n in _call_operands(walker, spot, node)]
    inner = inner_expressions(node)
    return [Spot(spot.scope, n) for n in inner]


def _before_augmented(walker: Walker, spot: Spot, node: ast.AugAssign) -> list[Spot]:
    key = key_of(node.target)
    if key is None:
        return []
    at = Spot(spot.scope, node)
    return [s for b in walker.bindings(at, key) for s in bound(b, ()) if s.node is not node]


def _call_operands(walker: Walker, spot: Spot, node: ast.Call) -> Iterator[ast.expr]:
    if isinstance(node.func, ast.Attribute):
        base = walker.value(Spot(spot.scope, node.func.value))
        if not isinstance(base, (types.ModuleType, type)) and not live.is_module(base):
            yield node.func.value
    elif isinstance(node.func, ast.Call):
        yield node.func
    for argument in (*node.args, *(k.value for k in node.keywords)):
        yield argument.value if isinstance(argument, ast.Starred) else argument
