"""What statements put into a container: `append`, `d[k] = v` and the like."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .bindings import FUNCTIONS, How, Part, key_of
from .calls import from_call
from .scopes import sources_before, users_of_global
from .spots import Scope, Spot
from .syntax import bodies, inserted, is_method, statements_of

if TYPE_CHECKING:
    from .walker import Walker


def insertions(walker: Walker, base: Spot, part: Part) -> list[Spot]:
    """`base.append(v)`, `base[k] = v` and the like, wherever the container is known as
    `base` or, for an attribute, under the same attribute."""
    found: list[Spot] = []
    for scope, key in _aliases(walker, base):
        for statement in statements_of(scope.body):
            found += [Spot(scope, v, p) for v, p in inserted(statement, key, part)]
    return found


def _aliases(walker: Walker, base: Spot) -> list[tuple[Scope, str]]:
    """The scopes and keys under which the container may be filled."""
    key = key_of(base.node)
    if key is None:
        return []
    found = [(base.scope, key)]
    if isinstance(base.scope.body, ast.Module):
        found += [(walker.top(c), key) for c in sources_before(walker, base.scope.source, False)]
        found += [(scope, key) for scope in users_of_global(walker, key)]
    if isinstance(base.node, ast.Attribute):
        attr = base.node.attr
        owner = walker.value(Spot(base.scope, base.node.value))
        for source in walker.sources(owner):
            found += [
                (
                    walker.scope_of(
                        source, body, owner if is_method(body, walker.index(source)) else None
                    ),
                    f"self.{attr}",
                )
                for body in bodies(source.tree)
                if isinstance(body, FUNCTIONS)
            ]
        return found
    for scope, binding in walker.bindings(base, key):
        value = binding.value
        if isinstance(scope.body, ast.Module) and scope is not base.scope:
            # A function's global: filled at the top level of any cell.
            found += [(walker.top(c), key) for c in sources_before(walker, scope.source, True)]
        if binding.how is How.ASSIGN and value is not None and not binding.path:
            found += _returned_names(walker, Spot(scope, value))
        if scope is not base.scope:
            found.append((scope, key))
    return found


def _returned_names(walker: Walker, spot: Spot) -> list[tuple[Scope, str]]:
    """`unknowns = make(...)` was filled inside `make` under the name it returns."""
    if isinstance(spot.node, ast.Call):
        inner = from_call(walker, spot, spot.node)
        return [(s.scope, k) for s in inner or () if (k := key_of(s.node)) is not None]
    key = key_of(spot.node)
    return [] if key is None else [(spot.scope, key)]
