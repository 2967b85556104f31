"""From a call into the user's function, and from a parameter back to its argument."""

from __future__ import annotations

import ast
import contextlib
import types
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...arguments import (
    FunctionNode,
    bind,
    default,
    given_by,
    owner_of,
    parameters,
    positional_parameters,
)
from ...isolation.type_checks import class_attribute
from ...program import Source
from ...program_index import index_of
from . import safe_lookup
from .containers import through_iteration
from .expression import ExprAt, Scope
from .protocol import Slicing
from .reaching_definitions import FUNCTIONS
from .scopes import enclosing
from .syntax import (
    definition,
    first_parameter,
    is_container,
    returns,
)


def from_call(slicer: Slicing, spot: ExprAt, node: ast.Call) -> list[ExprAt] | None:
    """The returned expressions of the user's own function, or the element of an iterable."""
    through = through_iteration(slicer, spot, node)
    if through is not None:
        return through
    if spot.path and is_container(node):
        return []
    scope = slicer.callee(spot)
    if scope is None:
        return None
    returned = [ExprAt(scope, value, spot.path) for value in returns(scope.body)]
    return returned or None


def callee(slicer: Slicing, spot: ExprAt) -> Scope | None:
    """The user's function that a call runs, entered with this call; None for a library."""
    if not isinstance(spot.node, ast.Call):
        return None
    frame = slicer.frame_scope(spot.node)
    if frame is not None:
        return frame
    value = slicer.value(ExprAt(spot.scope, spot.node.func))
    if _target(slicer, value)[0] is None:
        return _static_callee(slicer, spot)
    entered = entry(slicer, value)
    return None if entered is None else replace(entered, call=spot)


def entry(slicer: Slicing, value: Any) -> Scope | None:
    """The user's function that calling a live object runs, its call not known; None for a
    library's."""
    function, receiver = _target(slicer, value)
    found = None if function is None else _function_node(slicer, function)
    if function is None or found is None:
        return None
    source, body = found
    values = dict(closed_over(function))
    if receiver is not safe_lookup.MISSING:
        values[first_parameter(body)] = receiver
    return Scope(source, body, values, None, receiver)


def handed_over(slicer: Slicing, call: ExprAt, spot: ExprAt) -> Scope | None:
    """The user's function that an argument of a library's call is, a lambda or one defined beside
    it too, entered by that library."""
    entered = entry(slicer, slicer.value(spot))
    for maker in slicer.makers(spot) if entered is None else ():
        found = (b.statement for _, b in slicer.bindings(maker, maker.key or ""))
        body = next((n for n in (maker.node, *found) if isinstance(n, FUNCTIONS)), None)
        if body is not None:
            entered = Scope(maker.scope.source, body, outer=maker.scope)
            break
    if entered is None or not isinstance(entered.body, FUNCTIONS):
        return None
    return replace(entered, call=call, given=dict.fromkeys(parameters(entered.body)))


def closed_over(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The names of the functions around it that a live function reads: `fn` of a decorator."""
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=False):
        with contextlib.suppress(ValueError):  # not bound yet
            yield name, cell.cell_contents


def _target(slicer: Slicing, value: Any) -> tuple[types.FunctionType | None, Any]:
    """The plain function behind a callable, and its receiver.  A wrapper of the user's own runs as
    it is written."""
    receiver = safe_lookup.MISSING
    if isinstance(value, types.MethodType):
        receiver, value = value.__self__, value.__func__
    elif safe_lookup.is_module(value):
        receiver, value = value, class_attribute(type(value), "forward")
    elif not isinstance(value, (types.FunctionType, type, types.BuiltinFunctionType)):
        receiver, value = value, class_attribute(type(value), "__call__")
    while isinstance(getattr(value, "__wrapped__", None), types.FunctionType):
        if _function_node(slicer, value) is not None:
            break
        value = value.__wrapped__
    return (value, receiver) if isinstance(value, types.FunctionType) else (None, receiver)


def _static_callee(slicer: Slicing, spot: ExprAt) -> Scope | None:
    """A call of a local object that no longer lives: its class is read from the source."""
    assert isinstance(spot.node, ast.Call)
    function = spot.node.func
    attr = function.attr if isinstance(function, ast.Attribute) else ""
    base = function.value if isinstance(function, ast.Attribute) else function
    for maker in slicer.makers(ExprAt(spot.scope, base)):
        if not isinstance(maker.node, ast.Call):
            continue
        cls = slicer.value(ExprAt(maker.scope, maker.node.func))
        if isinstance(cls, type):
            default = "forward" if safe_lookup.is_module_class(cls) else "__call__"
            method = class_attribute(cls, attr or default)
            found = _function_node(slicer, method) if safe_lookup.is_function(method) else None
            if found is not None:
                return Scope(*found, {first_parameter(found[1]): cls}, spot, cls)
    return None


def _function_node(
    slicer: Slicing, function: types.FunctionType
) -> tuple[Source, FunctionNode] | None:
    """The definition of a live function in the user's source."""
    code = function.__code__
    source = slicer.program.source_of(code)
    return None if source is None else definition(source, code)


def argument(slicer: Slicing, scope: Scope, name: str) -> ExprAt | None:
    """The expression passed for a parameter by the call that entered the scope; None where a
    library made the call, which is known by what it handed over."""
    if not isinstance(scope.body, FUNCTIONS) or name not in parameters(scope.body):
        return None
    if name in scope.given:
        return None  # the user's other calls of the function handed over something else
    calls = [scope.call] if scope.call is not None else _calls_of(slicer, scope)
    for call in calls:
        if isinstance(call.node, ast.Call):
            given = _bound(scope, call).get(name)
            if given is not None:
                return given
            # A default stands in the definition, an argument at the call.
            value = default(scope.body, name)
            if value is not None:
                return ExprAt(enclosing(slicer, scope) or slicer.top(scope.source), value)
    return None


def _bound(scope: Scope, call: ExprAt) -> dict[str, ExprAt]:
    """As `bound_arguments`, through what wrappers hand on, of the call that enters a scope."""
    assert isinstance(call.node, ast.Call) and isinstance(scope.body, FUNCTIONS)
    positional = positional_parameters(scope.body)
    # `fn(self, x)` of a wrapper names the object itself.
    known = scope.call is call and scope.receiver is safe_lookup.MISSING
    plain = known and isinstance(call.node.func, ast.Name) and bool(call.node.args)
    method = positional[:1] in (["self"], ["cls"]) and not plain
    found = bind(positional[method:], _given(call))
    if method:
        found.setdefault(positional[0], call.inside(owner_of(call.node)))
    return found


def _given(call: ExprAt) -> Iterator[tuple[str, ExprAt]]:
    """A call's arguments as `bind` wants them; the `*args` and `**kwargs` of the function around it
    are what that function was called with."""
    assert isinstance(call.node, ast.Call)
    for keyword, node in given_by(call.node):
        value = node.value if isinstance(node, ast.Starred) else node
        handed_on = _handed_on(call.scope, keyword, value)
        if handed_on is None:
            yield keyword, call.inside(node)
        else:
            yield from handed_on


def _handed_on(scope: Scope, keyword: str, value: ast.expr) -> list[tuple[str, ExprAt]] | None:
    """What a starred name stands for; None where it is none of the function's own parameters."""
    body, outer = scope.body, scope.call
    if outer is None or not isinstance(body, FUNCTIONS) or not isinstance(outer.node, ast.Call):
        return None
    own = {"*": body.args.vararg, "**": body.args.kwarg}.get(keyword)
    if own is None or not isinstance(value, ast.Name) or value.id != own.arg:
        return None
    given, names = list(_given(outer)), positional_parameters(body)
    if keyword == "**":
        known = {"", "*", "**", *parameters(body)}
        return [(name, spot) for name, spot in given if name not in known]
    by_position = [(name, spot) for name, spot in given if name in ("", "*")]
    if scope.receiver is not safe_lookup.MISSING:
        by_position.insert(0, ("", outer.inside(owner_of(outer.node))))
    return by_position[len(names) :]


def _calls_of(slicer: Slicing, scope: Scope) -> list[ExprAt]:
    """Calls of a function found by its name, newest cell first."""
    index = slicer.index(scope.source)
    cls = index.class_of(scope.body)
    name = scope.function
    names = {name}
    if cls is not None and name == "__init__":
        names = {cls.name}
    found = []
    lives = index_of(slicer.program).lives
    for source in slicer.sources():
        for node in source.nodes:
            if not isinstance(node, ast.Call) or not lives(node):
                continue
            if _calls(slicer, source, node, names, name, scope):
                outer = slicer.scope_of(source, slicer.index(source).body_of(node))
                found.append(ExprAt(outer, node))
    return found


def _calls(
    slicer: Slicing,
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
    if name in ("forward", "__call__") and scope.receiver is not safe_lookup.MISSING:
        outer = slicer.scope_of(source, slicer.index(source).body_of(node))
        return slicer.value(ExprAt(outer, function)) is scope.receiver
    return False
