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
    """The statement of an expression, and those that read what was computed from it: below, and of
    what was `changed` in a loop above in the next round, too."""
    names: frozenset[str] = frozenset()
    for statement in (*_simple(scope), *_next_round(scope, start, changed)):
        begins = contains(statement, start)
        if begins or reads(statement, names):
            yield statement
            names |= bound(statement) | _put_into(statement)
            names |= frozenset({changed}) if begins else names


def _simple(scope: ast.AST) -> Iterator[ast.stmt]:
    return (n for n in own_nodes(scope) if isinstance(n, ast.stmt) and is_simple(n))


def _next_round(scope: ast.AST, start: ast.expr, changed: str) -> list[ast.stmt]:
    """What runs after the last statement of the loop around an expression and may read what it has
    changed: the loop once more, and what follows.  Not where a round begins with another value."""
    loops = (n for n in own_nodes(scope) if isinstance(n, (ast.For, ast.While)))
    loop = next((n for n in loops if changed and contains(n, start)), None)
    if loop is None or any(changed in bound(s) or is_differentiated(s) for s in _simple(loop)):
        return []
    return [*_simple(loop), *(s for s in _simple(scope) if s.lineno > (loop.end_lineno or 0))]


def _put_into(statement: ast.stmt) -> frozenset[str]:
    """`outputs` of `outputs.append(y)`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    method = call.func if isinstance(call, ast.Call) else None
    held = method.value if isinstance(method, ast.Attribute) else None
    if isinstance(held, ast.Name) and called_name(call) in ("append", "extend", "insert", "add"):
        return frozenset({held.id})
    return frozenset()


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
