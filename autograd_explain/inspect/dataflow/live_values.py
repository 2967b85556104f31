"""Live objects behind expressions; nothing is run."""

from __future__ import annotations

import ast
from typing import Any

from ...arguments import parameters
from ...program_index import index_of
from . import safe_lookup
from .expression import ExprAt, Scope
from .names import bound
from .protocol import Slicing
from .reaching_definitions import FUNCTIONS, Each, all_bindings, reaching
from .safe_lookup import Named, evaluate
from .scopes import enclosing


def value(slicer: Slicing, spot: ExprAt, depth: int = 0) -> Any:
    """The live object an expression names, or safe_lookup.MISSING; no user code runs.

    For a name that was bound again since, this is the newer object: good enough to tell
    functions, modules and classes, not to tell tensors (see `tensor`).
    """
    if depth > 12 or spot.path or not isinstance(spot.node, ast.expr):
        return safe_lookup.MISSING
    return evaluate(spot.node, named(slicer, spot.scope, depth))


def named(slicer: Slicing, scope: Scope, depth: int = 0) -> Named:
    """What names are in a scope."""
    return lambda node: _named(slicer, ExprAt(scope, node), node.id, depth + 1)


def _named(slicer: Slicing, spot: ExprAt, name: str, depth: int) -> Any:
    scope = spot.scope
    if name in scope.values:
        return scope.values[name]
    if isinstance(scope.body, FUNCTIONS):
        if all_bindings(scope.body, name) or name in parameters(scope.body):
            return _local(slicer, spot, name, depth)
        outer = enclosing(slicer, scope)
        if outer is not None:
            found = _named(slicer, ExprAt(outer, spot.node), name, depth + 1)
            if found is not safe_lookup.MISSING:
                return found
    namespace = slicer.top(scope.source).values
    return namespace[name] if name in namespace else safe_lookup.builtin(name)


def _local(slicer: Slicing, spot: ExprAt, name: str, depth: int) -> Any:
    """A name of a function that has returned: what it was bound to may live elsewhere."""
    nearest = slicer.bindings(spot, name)[:3]
    values = [_bound(slicer, s, depth + 1) for b in nearest for s in bound(b, ())]
    known = [v for v in values if v is not safe_lookup.MISSING]
    return known[0] if len(known) == 1 else safe_lookup.MISSING


def _bound(slicer: Slicing, spot: ExprAt, depth: int) -> Any:
    """What a name was bound to; of the modules that a loop takes from a list one that stands for
    all, where they are of one class and need gradients alike."""
    if not spot.path:
        return slicer.value(spot, depth)
    if spot.path != (Each.ITEM,):
        return safe_lookup.MISSING
    found = safe_lookup.iterated(spot.node, named(slicer, spot.scope, depth))
    if not found or not all(safe_lookup.is_module(m) for m in found):
        return safe_lookup.MISSING
    kinds = {(type(m), frozenset(p.requires_grad for p in m.parameters())) for m in found}
    return found[0] if len(kinds) == 1 else safe_lookup.MISSING


def tensor(slicer: Slicing, spot: ExprAt) -> Any:
    """The live tensor an expression's value still is, or None.

    Only where nothing bound the name again after `spot`.
    """
    key = spot.key
    if key is not None and key in spot.scope.given and not spot.path:
        bound_again = reaching(slicer.index(spot.scope.source), spot.node, key)
        return None if bound_again else spot.scope.given[key]
    if key is None or spot.path or _bound_later(slicer, spot, key):
        return None
    value = slicer.value(spot)
    return value if safe_lookup.is_tensor(value) else None


def _bound_later(slicer: Slicing, spot: ExprAt, key: str) -> bool:
    scope = spot.scope
    if not scope.values:
        return True
    index = slicer.index(scope.source)
    seen = {id(b.statement) for b in reaching(index, spot.node, key)}
    others = [b for b in all_bindings(scope.body, key) if id(b.statement) not in seen]
    here = slicer.statement(spot)
    line = here.lineno if here is not None else spot.node.lineno
    if any(b.statement.lineno >= line for b in others):
        return True
    if isinstance(scope.body, FUNCTIONS) or scope.source.cell is None:
        return False
    runs = index_of(slicer.program).runs
    later = (c for c in runs if (c.cell or 0) > (scope.source.cell or 0))
    return any(all_bindings(c.tree, key) for c in later)
