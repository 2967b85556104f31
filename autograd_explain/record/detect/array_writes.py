"""Statements that write a NumPy array, as far as their text shows it."""

from __future__ import annotations

import ast

from ...inspect.dataflow.syntax import container_of

_METHODS = frozenset({"fill", "sort", "put", "resize", "setfield", "partition", "itemset"})
_FUNCTIONS = frozenset(
    {"copyto", "put", "put_along_axis", "place", "putmask", "fill_diagonal", "shuffle"}
)
_NUMPY = frozenset({"np", "numpy", "torch"})


def writes_array(statement: ast.stmt) -> bool:
    """`buffer[i] = x`, `buffer.sort()`, `np.copyto(buffer, x)`, `np.add(a, b, out=buffer)`."""
    if isinstance(statement, ast.Assign) and any(_is_item(t) for t in statement.targets):
        return True
    if isinstance(statement, ast.AugAssign) and _is_item(statement.target):
        return True
    return not hasattr(statement, "body") and _by_call(statement) is not None


def changes(statement: ast.stmt) -> bool:
    """Whether the statement writes, if what it names is an array: `a *= 0.9` does then."""
    return writes_array(statement) or isinstance(statement, ast.AugAssign)


def may_write_array(statement: ast.stmt) -> bool:
    """`buffer += x`, which for an array writes it and for a number makes a new one."""
    return isinstance(statement, ast.AugAssign) and not isinstance(statement.value, ast.Constant)


def written_array(statement: ast.stmt) -> str:
    """What the statement calls the array that it writes, "" where it has no name."""
    target: ast.expr | None = _by_call(statement)
    if isinstance(statement, ast.Assign):
        target = next((t for t in statement.targets if _is_item(t)), target)
        target = target if target is not None else statement.targets[0]
    elif isinstance(statement, ast.AugAssign):
        target = statement.target
    target = None if target is None else container_of(target)
    known = target is not None and not isinstance(target, (ast.Tuple, ast.List))
    return ast.unparse(target) if known and target is not None else ""


def _is_item(target: ast.expr) -> bool:
    """An item of an array; a text as the key means a dict."""
    if not isinstance(target, ast.Subscript):
        return False
    key = target.slice
    return not (isinstance(key, ast.Constant) and isinstance(key.value, str))


def _by_call(statement: ast.stmt) -> ast.expr | None:
    """The array that a call of the statement writes."""
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
    return next((w for c in calls if (w := _written(c)) is not None), None)


def _written(call: ast.Call) -> ast.expr | None:
    out = next((k.value for k in call.keywords if k.arg == "out"), None)
    function = call.func
    if out is not None or not isinstance(function, ast.Attribute):
        return out
    of_module = isinstance(function.value, ast.Name) and function.value.id in _NUMPY
    if function.attr in _METHODS and not of_module:
        return function.value
    return call.args[0] if function.attr in _FUNCTIONS and call.args else None
