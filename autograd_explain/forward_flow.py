"""Where a value goes from an expression on, by the names that statements give to what they compute
from it: read from the text of one function."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .program import called_name, own_nodes


def flows_out(
    scope: ast.AST, start: ast.expr, other: ast.expr | None = None, changed: str = ""
) -> bool:
    """Whether what is computed from one expression is returned, differentiated, or put together
    with another one; or what is computed from a name that the expression has `changed`."""
    return any(
        isinstance(statement, ast.Return)
        or (other is not None and contains(statement, other))
        or is_differentiated(statement)
        for statement in computed_from(scope, start, changed)
    )


def computed_from(scope: ast.AST, start: ast.expr, changed: str = "") -> Iterator[ast.stmt]:
    """The statement of an expression, and those below that read what was computed from it."""
    names: frozenset[str] = frozenset()
    for statement in (n for n in own_nodes(scope) if isinstance(n, ast.stmt) and is_simple(n)):
        begins = contains(statement, start)
        if begins or reads(statement, names):
            yield statement
            names |= bound(statement) | (frozenset({changed}) if begins else names)


def is_differentiated(statement: ast.stmt) -> bool:
    """Whether a statement calls `backward`."""
    return any(called_name(n) == "backward" for n in ast.walk(statement))


def bound(statement: ast.stmt) -> frozenset[str]:
    """The names that a statement binds, those in a tuple too."""
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    inner = (e for t in targets for e in getattr(t, "elts", [t]))
    return frozenset(t.id for t in inner if isinstance(t, ast.Name))


def is_simple(statement: ast.stmt) -> bool:
    return not hasattr(statement, "body")


def reads(root: ast.AST, names: frozenset[str]) -> bool:
    return any(is_read(n, names) for n in ast.walk(root))


def is_read(node: ast.AST, names: frozenset[str]) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names


def contains(root: ast.AST, node: ast.AST) -> bool:
    return any(n is node for n in ast.walk(root))
