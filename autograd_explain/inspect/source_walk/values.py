"""Live objects behind expressions; nothing is run."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from . import live
from .bindings import FUNCTIONS, all_bindings, key_of, reaching
from .evaluate import Named, evaluate
from .names import bound
from .scopes import enclosing
from .spots import Scope, Spot
from .syntax import parameters

if TYPE_CHECKING:
    from .walker import Walker


def value(walker: Walker, spot: Spot, depth: int = 0) -> Any:
    """The live object an expression names, or live.MISSING; no user code runs.

    For a name that was bound again since, this is the newer object: good enough to tell
    functions, modules and classes, not to tell tensors (see `tensor`).
    """
    if depth > 12 or spot.path or not isinstance(spot.node, ast.expr):
        return live.MISSING
    return evaluate(spot.node, named(walker, spot.scope, depth))


def named(walker: Walker, scope: Scope, depth: int = 0) -> Named:
    """What names are in a scope."""
    return lambda node: _named(walker, Spot(scope, node), node.id, depth + 1)


def _named(walker: Walker, spot: Spot, name: str, depth: int) -> Any:
    scope = spot.scope
    if name in scope.values:
        return scope.values[name]
    if isinstance(scope.body, FUNCTIONS):
        if all_bindings(scope.body, name) or name in parameters(scope.body):
            return _local(walker, spot, name, depth)
        outer = enclosing(walker, scope)
        if outer is not None:
            found = _named(walker, Spot(outer, spot.node), name, depth + 1)
            if found is not live.MISSING:
                return found
    namespace = walker.top(scope.source).values
    return namespace[name] if name in namespace else live.builtin(name)


def _local(walker: Walker, spot: Spot, name: str, depth: int) -> Any:
    """A name of a function that has returned: what it was bound to may live elsewhere."""
    nearest = walker.bindings(spot, name)[:3]
    values = [walker.value(s, depth + 1) for b in nearest for s in bound(b, ()) if not s.path]
    known = [v for v in values if v is not live.MISSING]
    return known[0] if len(known) == 1 else live.MISSING


def tensor(walker: Walker, spot: Spot) -> Any:
    """The live tensor an expression's value still is, or None.

    Only where nothing bound the name again after `spot`.
    """
    key = key_of(spot.node)
    if key is None or spot.path or _bound_later(walker, spot, key):
        return None
    value = walker.value(spot)
    return value if live.is_tensor(value) else None


def _bound_later(walker: Walker, spot: Spot, key: str) -> bool:
    scope = spot.scope
    if not scope.values:
        return True
    index = walker.index(scope.source)
    seen = {id(b.statement) for b in reaching(index, spot.node, key)}
    others = [b for b in all_bindings(scope.body, key) if id(b.statement) not in seen]
    here = walker.statement(spot)
    line = here.lineno if here is not None else spot.node.lineno
    if any(b.statement.lineno >= line for b in others):
        return True
    if isinstance(scope.body, FUNCTIONS) or scope.source.cell is None:
        return False
    later = (c for c in walker.program.cells if (c.cell or 0) > (scope.source.cell or 0))
    return any(all_bindings(c.tree, key) for c in later)
