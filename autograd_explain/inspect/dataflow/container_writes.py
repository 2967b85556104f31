"""What statements put into a container: `append`, `d[k] = v` and the like."""

from __future__ import annotations

import ast

from ...program_index import index_of
from .branches import never_ran
from .calls import from_call
from .expression import ExprAt, Scope
from .protocol import Slicing
from .reaching_definitions import FUNCTIONS, How, Part
from .scopes import sources_before, users_of_global
from .syntax import bodies, inserted, is_method, statements_of


def insertions(slicer: Slicing, base: ExprAt, part: Part) -> list[ExprAt]:
    """`base.append(v)`, `base[k] = v` and the like, wherever the container is known as
    `base` or, for an attribute, under the same attribute."""
    found: list[ExprAt] = []
    value = slicer.value(base)
    length = len(value) if type(value) is list else 0
    for scope, key in _aliases(slicer, base):
        for statement in statements_of(scope.body):
            put = inserted(statement, key, part, length)
            ran = ((v, p) for v, p in put if not never_ran(slicer, scope, v, scope.body))
            found += [ExprAt(scope, v, p) for v, p in ran]
    return found


def _aliases(slicer: Slicing, base: ExprAt) -> list[tuple[Scope, str]]:
    """The scopes and keys under which the container may be filled."""
    key = base.key
    if key is None:
        return []
    found = [(base.scope, key)]
    if isinstance(base.scope.body, ast.Module):
        found += [(slicer.top(c), key) for c in sources_before(slicer, base.scope.source, False)]
        found += [(scope, key) for scope in users_of_global(slicer, key)]
    if isinstance(base.node, ast.Attribute):
        attr = base.node.attr
        owner = slicer.value(ExprAt(base.scope, base.node.value))
        for source in slicer.sources(owner):
            found += [
                (
                    slicer.scope_of(
                        source, body, owner if is_method(body, slicer.index(source)) else None
                    ),
                    f"self.{attr}",
                )
                for body in bodies(source.tree)
                if isinstance(body, FUNCTIONS) and index_of(slicer.program).lives(body)
            ]
        return found
    for scope, binding in slicer.bindings(base, key):
        value = binding.value
        if isinstance(scope.body, ast.Module) and scope is not base.scope:
            # A function's global: filled at the top level of any cell.
            found += [(slicer.top(c), key) for c in sources_before(slicer, scope.source, True)]
        if binding.how is How.ASSIGN and value is not None and not binding.path:
            found += _returned_names(slicer, ExprAt(scope, value))
        if scope is not base.scope:
            found.append((scope, key))
    return found


def _returned_names(slicer: Slicing, spot: ExprAt) -> list[tuple[Scope, str]]:
    """`unknowns = make(...)` was filled inside `make` under the name it returns."""
    if isinstance(spot.node, ast.Call):
        inner = from_call(slicer, spot, spot.node)
        return [(s.scope, k) for s in inner or () if (k := s.key) is not None]
    key = spot.key
    return [] if key is None else [(spot.scope, key)]
