"""The value of an expression that only looks things up; nothing of the user's code runs."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from . import safe_lookup

#: What a name is at the place asked about, or safe_lookup.MISSING.
Named = Callable[[ast.Name], Any]
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_LONGEST_TEXT = 1000
_MOST_ROUNDS = 100


def evaluate(node: ast.AST, named: Named) -> Any:
    """A path of names, attributes and items: `outs[i - 1]`, `getattr(model, f"w{i}")`.

    safe_lookup.MISSING where a call, a property or a tensor's attribute would have to run.
    """
    if isinstance(node, ast.Name):
        return named(node)
    if isinstance(node, ast.Attribute):
        return _attribute(evaluate(node.value, named), node.attr)
    if isinstance(node, ast.Subscript):
        key = evaluate(node.slice, named)
        return _item(evaluate(node.value, named), key)
    if isinstance(node, ast.Call):
        return _call(node, named)
    return _plain(node, named)


def iterated(node: ast.AST, named: Named) -> list[Any]:
    """What a loop over an expression takes from it: elements, keys, pairs; [] where unknown."""
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [evaluate(e, named) for e in node.elts]
    if isinstance(node, ast.Call):
        return list(islice(_iterated_call(node, named), _MOST_ROUNDS))
    value = evaluate(node, named)
    return list(islice(value, _MOST_ROUNDS)) if type(value) in (list, tuple, dict) else []


def _iterated_call(node: ast.Call, named: Named) -> Iterable[Any]:
    function, given = node.func, node.args
    if isinstance(function, ast.Attribute) and not given:
        held = evaluate(function.value, named)
        known = type(held) is dict and function.attr in ("items", "values", "keys")
        return getattr(held, function.attr)() if known else ()
    name = function.id if isinstance(function, ast.Name) else ""
    if name == "range" and given:
        limits = [evaluate(a, named) for a in given]
        known = len(limits) <= 3 and all(type(i) is int for i in limits) and 0 not in limits[2:]
        return range(*limits) if known else ()
    if name == "enumerate" and given:
        return enumerate(iterated(given[0], named))
    if name == "zip":
        return zip(*(iterated(a, named) for a in given), strict=False)
    return iterated(given[0], named) if name in ("list", "reversed", "sorted") and given else ()


def taken(target: ast.AST, value: Any) -> dict[str, Any]:
    """The names that a loop's target gives to one element."""
    if isinstance(target, ast.Name):
        return {target.id: value}
    if isinstance(target, (ast.Tuple, ast.List)) and type(value) in (list, tuple):
        pairs = zip(target.elts, value, strict=False)
        return {k: v for t, part in pairs for k, v in taken(t, part).items()}
    return {}


def _attribute(base: Any, name: str) -> Any:
    if base is safe_lookup.MISSING or safe_lookup.is_tensor(base):
        return safe_lookup.MISSING
    return safe_lookup.attribute(base, name)


def _item(base: Any, key: Any) -> Any:
    plain = type(key) in (int, str) and base is not safe_lookup.MISSING
    return safe_lookup.item(base, key) if plain else safe_lookup.MISSING


def _call(node: ast.Call, named: Named) -> Any:
    """`getattr(x, name)`, `vars(x)`, `d.get(key)`, `len(d)`, `str(i)` of the plain kinds."""
    given = [evaluate(a, named) for a in node.args]
    if node.keywords or not given or given[0] is safe_lookup.MISSING:
        return safe_lookup.MISSING
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr == "get":
        return _item(evaluate(function.value, named), given[0])
    name = function.id if isinstance(function, ast.Name) else ""
    if not isinstance(function, ast.Name) or named(function) is not safe_lookup.builtin(name):
        return safe_lookup.MISSING
    if name == "getattr" and len(given) > 1:
        return _attribute(given[0], given[1]) if type(given[1]) is str else safe_lookup.MISSING
    if name == "vars" and not safe_lookup.is_tensor(given[0]):
        return safe_lookup.own(given[0])
    if name == "len" and type(given[0]) in (list, tuple, dict, str):
        return len(given[0])
    if name == "str" and type(given[0]) in (int, str):
        return str(given[0])
    return safe_lookup.MISSING


def _plain(node: ast.AST, named: Named) -> Any:
    """Literals, and what integers and short texts are put together to."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = evaluate(node.operand, named)
        return -inner if type(inner) is int else safe_lookup.MISSING
    if isinstance(node, ast.BinOp):
        return _arithmetic(node, named)
    if isinstance(node, ast.JoinedStr):
        parts = [_part(p, named) for p in node.values]
        return "".join(parts) if all(type(p) is str for p in parts) else safe_lookup.MISSING
    return safe_lookup.MISSING


def _arithmetic(node: ast.BinOp, named: Named) -> Any:
    left, right = evaluate(node.left, named), evaluate(node.right, named)
    function = _ARITHMETIC.get(type(node.op))
    texts = type(left) is str and type(right) is str and isinstance(node.op, ast.Add)
    if function is None or not (texts or (type(left) is int and type(right) is int)):
        return safe_lookup.MISSING
    if texts and len(left) + len(right) > _LONGEST_TEXT:
        return safe_lookup.MISSING
    try:
        return function(left, right)
    except ZeroDivisionError:
        return safe_lookup.MISSING


def _part(node: ast.expr, named: Named) -> Any:
    if isinstance(node, ast.FormattedValue):
        value = evaluate(node.value, named)
        known = type(value) in (int, str) and node.format_spec is None and node.conversion == -1
        return str(value) if known else safe_lookup.MISSING
    return evaluate(node, named)
