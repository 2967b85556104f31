"""What a name or a key such as `self.h` was bound to: here, at a call, in an earlier cell."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .bindings import (
    FUNCTIONS,
    Binding,
    How,
    Part,
    all_bindings,
    ends_with,
    head_of,
    key_of,
    reaching,
)
from .scopes import enclosing, sources_before, users_of_global
from .spots import Scope, Spot
from .syntax import declares_global, parameters

if TYPE_CHECKING:
    from .walker import Walker


def bindings(walker: Walker, spot: Spot, key: str) -> list[tuple[Scope, Binding]]:
    """The statements that may have bound `key` as `spot` sees it, nearest first."""
    scope = spot.scope
    index = walker.index(scope.source)
    found = [(scope, b) for b in reaching(index, spot.node, key)]
    if any(b.how is not How.AUGMENTED for _, b in found):
        return found
    if isinstance(scope.body, FUNCTIONS):
        return [*found, *_outside_function(walker, spot, key)]
    return [*found, *_earlier_cells(walker, scope, key)]


def from_key(walker: Walker, spot: Spot, key: str) -> list[Spot]:
    """The values bound to a key, as `spot` sees it."""
    bindings = walker.bindings(spot, key)
    return [s for b in bindings for s in bound(b, spot.path)]


def bound(found: tuple[Scope, Binding], path: tuple[Part, ...]) -> Iterator[Spot]:
    """The value that a binding gave, or the part of it under `path`."""
    scope, binding = found
    if binding.how is How.AUGMENTED and isinstance(binding.statement, ast.AugAssign):
        yield Spot(scope, binding.statement, path)
    elif binding.how is How.ASSIGN and binding.value is not None:
        yield Spot(scope, binding.value, (*binding.path, *path))


def _outside_function(walker: Walker, spot: Spot, key: str) -> list[tuple[Scope, Binding]]:
    scope = spot.scope
    argument = walker.argument(scope, key)
    if argument is not None:
        statement = walker.statement(argument)
        if statement is None or not isinstance(argument.node, ast.expr):
            return []
        return [(argument.scope, Binding(statement, How.ASSIGN, argument.node, argument.path))]
    head = head_of(key)
    if isinstance(scope.body, FUNCTIONS) and head in parameters(scope.body):
        return _through_argument(walker, scope, key, head)
    outer = enclosing(walker, scope)
    if outer is not None:
        found = all_bindings(outer.body, key)
        if found:
            return [(outer, b) for b in reversed(found)]
        return _outside_function(walker, Spot(outer, spot.node), key)
    return _earlier_cells(walker, scope, key, whole=True)


def _through_argument(
    walker: Walker, scope: Scope, key: str, head: str
) -> list[tuple[Scope, Binding]]:
    """`p.data` inside `f(p)` called as `f(net.w)` is `net.w.data` at the call."""
    argument = walker.argument(scope, head)
    outer = None if argument is None or argument.path else key_of(argument.node)
    if argument is None or outer is None:
        return []
    return walker.bindings(argument, outer + key[len(head) :])


def _earlier_cells(
    walker: Walker, scope: Scope, key: str, whole: bool = False
) -> list[tuple[Scope, Binding]]:
    """Bindings at the top level of what ran before, newest cell first."""
    found = _set_by_functions(walker, key)
    for source in sources_before(walker, scope.source, whole):
        outer = walker.top(source)
        bindings, certain = ends_with(walker.index(source), source.tree.body, key)
        found.extend((outer, b) for b in bindings)
        if certain:
            break
    return found


def _set_by_functions(walker: Walker, key: str) -> list[tuple[Scope, Binding]]:
    """`global h; h = …` and `cache["k"] = …` inside functions."""
    head = head_of(key)
    found = []
    for scope in users_of_global(walker, key):
        if key != head or declares_global(scope.body, head):
            found += [(scope, b) for b in reversed(all_bindings(scope.body, key))]
    return found
