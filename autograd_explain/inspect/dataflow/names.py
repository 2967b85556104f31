"""What a name or a key such as `self.h` was bound to: here, at a call, in an earlier cell."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...arguments import parameters
from .branches import never_ran
from .expression import ExprAt, Scope
from .protocol import Slicing
from .reaching_definitions import (
    FUNCTIONS,
    Binding,
    How,
    Part,
    all_bindings,
    ends_with,
    head_of,
    reaching,
)
from .scopes import enclosing, may_bind, sources_before, users_of_global
from .syntax import declares


def bindings(slicer: Slicing, spot: ExprAt, key: str) -> list[tuple[Scope, Binding]]:
    """The statements that may have bound `key` as `spot` sees it, nearest first."""
    scope = spot.scope
    index = slicer.index(scope.source)
    seen = reaching(index, spot.node, key)
    found = [(scope, b) for b in seen if not never_ran(slicer, scope, b.statement, spot.node)]
    if any(b.how is not How.AUGMENTED for _, b in found):
        return found
    if isinstance(scope.body, FUNCTIONS):
        return [*found, *_outside_function(slicer, spot, key)]
    return [*found, *_earlier_cells(slicer, scope, key)]


def from_key(slicer: Slicing, spot: ExprAt, key: str) -> list[ExprAt]:
    """The values bound to a key, as `spot` sees it."""
    bindings = slicer.bindings(spot, key)
    return [s for b in bindings for s in bound(b, spot.path)]


def bound(found: tuple[Scope, Binding], path: tuple[Part, ...]) -> Iterator[ExprAt]:
    """The value that a binding gave, or the part of it under `path`."""
    scope, binding = found
    if binding.how is How.AUGMENTED and isinstance(binding.statement, ast.AugAssign):
        yield ExprAt(scope, binding.statement, path)
    elif binding.how is How.ASSIGN and binding.value is not None:
        yield ExprAt(scope, binding.value, (*binding.path, *path))


def _outside_function(slicer: Slicing, spot: ExprAt, key: str) -> list[tuple[Scope, Binding]]:
    scope = spot.scope
    argument = slicer.argument(scope, key)
    if argument is not None:
        statement = slicer.statement(argument)
        if statement is None or not isinstance(argument.node, ast.expr):
            return []
        return [(argument.scope, Binding(statement, How.ASSIGN, argument.node, argument.path))]
    head = head_of(key)
    if isinstance(scope.body, FUNCTIONS) and head in parameters(scope.body):
        return _through_argument(slicer, scope, key, head)
    outer = enclosing(slicer, scope)
    if outer is not None:
        found = _bound_so_far(slicer, outer, key) or all_bindings(outer.body, key)
        if found:
            return [(outer, b) for b in reversed(found)]
        return _outside_function(slicer, ExprAt(outer, spot.node), key)
    return _earlier_cells(slicer, scope, key, whole=True)


def _bound_so_far(slicer: Slicing, outer: Scope, key: str) -> list[Binding]:
    """What reaches the statement at which a running function stands, in the text's order."""
    running = slicer.frame_scope(outer.body)
    if running is None or running.current is None:
        return []
    return list(reversed(reaching(slicer.index(outer.source), running.current, key)))


def _through_argument(
    slicer: Slicing, scope: Scope, key: str, head: str
) -> list[tuple[Scope, Binding]]:
    """`p.data` inside `f(p)` called as `f(net.w)` is `net.w.data` at the call."""
    argument = slicer.argument(scope, head)
    outer = None if argument is None or argument.path else argument.key
    if argument is None or outer is None:
        return []
    return slicer.bindings(argument, outer + key[len(head) :])


def _earlier_cells(
    slicer: Slicing, scope: Scope, key: str, whole: bool = False
) -> list[tuple[Scope, Binding]]:
    """Bindings at the top level of what ran before, newest cell first."""
    found = _set_by_functions(slicer, key)
    for source in sources_before(slicer, scope.source, whole):
        if not may_bind(source, key):
            continue
        outer = slicer.top(source)
        bindings, certain = ends_with(slicer.index(source), source.tree.body, key)
        found.extend((outer, b) for b in bindings)
        if certain:
            break
    return found


def _set_by_functions(slicer: Slicing, key: str) -> list[tuple[Scope, Binding]]:
    """`global h; h = …` and `cache["k"] = …` inside functions."""
    head = head_of(key)
    found = []
    for scope in users_of_global(slicer, key, binding=True):
        if key != head or declares(scope.body, head, ast.Global):
            found += [(scope, b) for b in reversed(all_bindings(scope.body, key))]
    return found
