"""Where gradient recording is off: blocks, decorators, and switches that nobody turned back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ...arguments import values_given
from ...forward_flow import contains
from ...program import called_name, last_name
from ...program_index import index_of
from .expression import ExprAt, Scope
from .reaching_definitions import FUNCTIONS
from .slicer import Slicer

_OFF = frozenset({"no_grad", "inference_mode"})
_ON = frozenset({"enable_grad"})
_SWITCH = frozenset({"set_grad_enabled", "_set_grad_enabled"})


class OffBy(str, Enum):
    """By what recording is off."""

    BLOCK = "block"
    DECORATOR = "decorator"
    SWITCH = "switch"  #: `torch.set_grad_enabled(False)` as a plain statement
    ENTERED = "entered"  #: `….__enter__()` without an exit
    APPLIED = (
        "applied"  #: `torch.no_grad()(f)`, `no_grad(f)`: each call of the result runs inside it
    )
    GENERATOR = "generator"  #: a `yield` inside a no_grad block: the consumer runs inside it


@dataclass(frozen=True, eq=False)
class Off:
    """A place that turns recording off; `node` is the with statement, decorator or call."""

    by: OffBy
    scope: Scope
    node: ast.AST


def switched_off_around(slicer: Slicer, spot: ExprAt) -> Off | None:
    """The innermost block, decorator or applied switch that keeps the operation at `spot`
    unrecorded, in its own function or in one that called it."""
    turned_on = False
    for state, cause in _states(slicer, spot):
        if state:
            if is_inference(cause):  # `inference_mode(False)`
                return None
            turned_on = True
        elif not turned_on or is_inference(cause):
            return cause
    return None


def turned_on_around(slicer: Slicer, spot: ExprAt) -> bool:
    """Whether the innermost of what sets the mode around `spot` turns recording on."""
    return next((state for state, _ in _states(slicer, spot)), False)


def is_inference(off: Off | None) -> bool:
    """Whether it is inference mode, in which `enable_grad()` makes nothing recorded."""
    if off is None:
        return False
    node = off.node
    nodes = [i.context_expr for i in node.items] if isinstance(node, ast.With) else [node]
    return any("inference_mode" in (called_name(n), last_name(n)) for n in nodes)


def _states(slicer: Slicer, spot: ExprAt) -> Iterator[tuple[bool, Off | None]]:
    """What blocks, decorators and applied switches around `spot` set recording to, the innermost
    first."""
    node: ast.AST = spot.node
    scope: Scope | None = spot.scope
    for _ in range(30):
        if scope is None:
            return
        applied = _applied(slicer, scope, node)
        if applied is not None:
            yield False, applied
        index = slicer.index(scope.source)
        for ancestor in index.ancestors(node):
            state, cause = _state(slicer, scope, ancestor, node)
            if state is not None:
                yield state, cause
            if ancestor is scope.body:
                break
        if isinstance(scope.body, FUNCTIONS):
            state, cause = _decorated(scope)
            if state is not None:
                yield state, cause
        call = scope.call
        node, scope = (call.node, call.scope) if call is not None else (node, None)


def _applied(slicer: Slicer, scope: Scope, call: ast.AST) -> Off | None:
    """The switch that was applied to what a call calls: `adder` of `adder = no_grad()(f)`, and of
    `adder = no_grad(f)`."""
    makers = slicer.makers(ExprAt(scope, call.func)) if isinstance(call, ast.Call) else []
    made = makers[0] if len(makers) == 1 else None
    if made is None or not isinstance(made.node, ast.Call):
        return None
    given = made.called in _OFF and bool(made.node.args)
    off = given or mode(slicer, made.scope, made.node.func) is False
    return Off(OffBy.APPLIED, made.scope, made.node) if off else None


def _state(
    slicer: Slicer, scope: Scope, block: ast.AST, inner: ast.AST
) -> tuple[bool | None, Off | None]:
    if isinstance(block, (ast.For, ast.AsyncFor)) and not contains(block.iter, inner):
        return _from_generator(slicer, scope, block.iter)
    if not isinstance(block, (ast.With, ast.AsyncWith)):
        return None, None
    for item in reversed(block.items):
        if contains(item, inner):
            continue
        state = mode(slicer, scope, item.context_expr)
        if state is not None:
            return state, Off(OffBy.BLOCK, scope, block)
    return None, None


def _from_generator(
    slicer: Slicer, scope: Scope, iterated: ast.expr
) -> tuple[bool | None, Off | None]:
    """A loop over a generator that yields inside its own no_grad block runs inside it too."""
    for call in ast.walk(iterated):
        callee = slicer.callee(ExprAt(scope, call)) if isinstance(call, ast.Call) else None
        for node in ast.walk(callee.body) if callee is not None else ():
            if isinstance(node, ast.With) and _yields(node) and _is_off(node):
                assert callee is not None
                return False, Off(OffBy.GENERATOR, callee, node)
    return None, None


def _decorated(scope: Scope) -> tuple[bool | None, Off | None]:
    for decorator in getattr(scope.body, "decorator_list", ()):
        name = called_name(decorator) if isinstance(decorator, ast.Call) else last_name(decorator)
        if name in _OFF:
            return False, Off(OffBy.DECORATOR, scope, decorator)
        if name in _ON:
            return True, None
    return None, None


def mode(slicer: Slicer, scope: Scope, manager: ast.expr) -> bool | None:
    """What a context expression sets recording to; None where it has no say or is not known."""
    if not isinstance(manager, ast.Call):
        return None
    name = called_name(manager)
    if name in _ON:
        return True
    given = values_given(manager)
    if name in _OFF:
        if name == "inference_mode" and given:
            value = slicer.value(ExprAt(scope, given[0]))
            return value is False  # inference_mode(False) records, whatever is around it
        return False
    if name in _SWITCH and given:
        value = slicer.value(ExprAt(scope, given[0]))
        return value if isinstance(value, bool) else None
    return None


def switches(slicer: Slicer) -> Iterator[Off]:
    """Statements anywhere in the program that turn recording off beyond their own end.

    Those that nothing in the same function turns on again come first.
    """
    found = list(_switches(slicer))
    yield from sorted(found, key=lambda off: _turned_on_again(off))


def _switches(slicer: Slicer) -> Iterator[Off]:
    for source, node in index_of(slicer.program).nodes(ast.stmt, newest_first=True):
        off = _switch(slicer, node)
        if isinstance(node, ast.With) and _yields(node) and _is_off(node):
            off = OffBy.GENERATOR
        if off is not None:
            yield Off(off, slicer.scope_of(source, slicer.index(source).body_of(node)), node)


def _switch(slicer: Slicer, node: ast.AST) -> OffBy | None:
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return None
    call = node.value
    if called_name(call) in _SWITCH and call.args:
        argument = call.args[0]
        on = isinstance(argument, ast.Constant) and bool(argument.value)
        return None if on else OffBy.SWITCH
    if called_name(call) == "__enter__" and isinstance(call.func, ast.Attribute):
        made = call.func.value
        if isinstance(made, ast.Call):
            return OffBy.ENTERED if called_name(made) in _OFF | _SWITCH else None
        if isinstance(made, ast.Name) and _assigned_off(slicer, made.id):
            return OffBy.ENTERED
    return None


def _assigned_off(slicer: Slicer, name: str) -> bool:
    """Whether some statement calls a guard `name`."""
    return any(
        called_name(node.value) in _OFF | _SWITCH
        for _, node in index_of(slicer.program).nodes(ast.Assign)
        if any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
    )


def _yields(block: ast.With) -> bool:
    return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(block))


def _is_off(block: ast.With) -> bool:
    calls = [i.context_expr for i in block.items if isinstance(i.context_expr, ast.Call)]
    return any(called_name(c) in _OFF for c in calls)


def _turned_on_again(off: Off) -> bool:
    if off.by is OffBy.GENERATOR:
        return False
    line = getattr(off.node, "lineno", 0)
    for node in ast.walk(off.scope.body):
        if not isinstance(node, ast.Call) or node.lineno <= line:
            continue
        if called_name(node) in _SWITCH and node.args:
            argument = node.args[0]
            if not (isinstance(argument, ast.Constant) and argument.value is False):
                return True
        if called_name(node) == "__exit__":
            return True
    return False


__all__ = [
    "Off",
    "OffBy",
    "is_inference",
    "mode",
    "switched_off_around",
    "switches",
    "turned_on_around",
]
