"""From a call into the user's function, and from a parameter back to its argument."""

from __future__ import annotations

import ast
import types
from typing import TYPE_CHECKING, Any

from ...program import Source
from . import live
from .bindings import FUNCTIONS, FunctionNode
from .containers import through_iteration
from .scopes import enclosing
from .spots import Scope, Spot
from .syntax import (
    bound_argument,
    defaults,
    definition,
    first_parameter,
    is_container,
    parameters,
    returns,
)

if TYPE_CHECKING:
    from .walker import Walker


def from_call(walker: Walker, spot: Spot, node: ast.Call) -> list[Spot] | None:
    """The returned expressions of the user's own function, or the element of an iterable."""
    through = through_iteration(walker, spot, node)
    if through is not None:
        return through
    if spot.path and is_container(node):
        return []
    scope = walker.callee(spot)
    if scope is None:
        return None
    returned = [Spot(scope, value, spot.path) for value in returns(scope.body)]
    return returned or None


def callee(walker: Walker, spot: Spot) -> Scope | None:
    """The user's function that a call runs, entered with this call; None for a library."""
    if not isinstance(spot.node, ast.Call):
        return None
    frame = walker.frame_scope(spot.node)
    if frame is not None:
        return frame
    function, receiver = _target(walker.value(Spot(spot.scope, spot.node.func)))
    if function is None:
        return _static_callee(walker, spot)
    found = _function_node(walker, function)
    if found is None:
        return None
    source, body = found
    values = {} if receiver is live.MISSING else {first_parameter(body): receiver}
    return Scope(source, body, values, spot, receiver)


def _target(value: Any) -> tuple[types.FunctionType | None, Any]:
    """The plain function behind a callable, and its receiver."""
    receiver = live.MISSING
    if isinstance(value, types.MethodType):
        receiver, value = value.__self__, value.__func__
    elif live.is_module(value):
        receiver, value = value, live.class_attribute(type(value), "forward")
    elif not isinstance(value, (types.FunctionType, type, types.BuiltinFunctionType)):
        receiver, value = value, live.class_attribute(type(value), "__call__")
    while isinstance(getattr(value, "__wrapped__", None), types.FunctionType):
        value = value.__wrapped__
    return (value, receiver) if isinstance(value, types.FunctionType) else (None, receiver)


def _static_callee(walker: Walker, spot: Spot) -> Scope | None:
    """A call of a local object that no longer lives: its class is read from the source."""
    assert isinstance(spot.node, ast.Call)
    function = spot.node.func
    attr = function.attr if isinstance(function, ast.Attribute) else ""
    base = function.value if isinstance(function, ast.Attribute) else function
    for maker in walker.makers(Spot(spot.scope, base)):
        if not isinstance(maker.node, ast.Call):
            continue
        cls = walker.value(Spot(maker.scope, maker.node.func))
        if isinstance(cls, type):
            default = "forward" if live.is_module_class(cls) else "__call__"
            method = live.class_attribute(cls, attr or default)
            found = _function_node(walker, method) if live.is_function(method) else None
            if found is not None:
                return Scope(*found, {first_parameter(found[1]): cls}, spot, cls)
    return None


def _function_node(
    walker: Walker, function: types.FunctionType
) -> tuple[Source, FunctionNode] | None:
    """The definition of a live function in the user's source."""
    code = function.__code__
    source = walker.program.source(code.co_filename)
    return None if source is None else definition(source, code)


def argument(walker: Walker, scope: Scope, name: str) -> Spot | None:
    """The expression passed for a parameter by the call that entered the scope."""
    if not isinstance(scope.body, FUNCTIONS) or name not in parameters(scope.body):
        return None
    calls = [scope.call] if scope.call is not None else _calls_of(walker, scope)
    for call in calls:
        if isinstance(call.node, ast.Call):
            found = bound_argument(scope.body, call.node, name)
            if found is not None:
                # A default stands in the definition, an argument at the call.
                inside = found in defaults(scope.body)
                return Spot(
                    enclosing(walker, scope) or walker.top(scope.source) if inside else call.scope,
                    found,
                )
    return None


def _calls_of(walker: Walker, scope: Scope) -> list[Spot]:
    """Calls of a function found by its name, newest cell first."""
    index = walker.index(scope.source)
    cls = index.class_of(scope.body)
    name = scope.function
    names = {name}
    if cls is not None and name == "__init__":
        names = {cls.name}
    found = []
    for source in walker.sources():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and _calls(walker, source, node, names, name, scope):
                outer = walker.scope_of(source, walker.index(source).body_of(node))
                found.append(Spot(outer, node))
    return found


def _calls(
    walker: Walker,
    source: Source,
    node: ast.Call,
    names: set[str | None],
    name: str | None,
    scope: Scope,
) -> bool:
    function = node.func
    called = getattr(function, "attr", getattr(function, "id", None))
    if called in names:
        return True
    if name in ("forward", "__call__") and scope.receiver is not live.MISSING:
        outer = walker.scope_of(source, walker.index(source).body_of(node))
        return walker.value(Spot(outer, function)) is scope.receiver
    return False
