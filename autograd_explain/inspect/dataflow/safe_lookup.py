"""The value of an expression that only looks things up; none of the user's code runs.

Attributes are read from instance dictionaries, module tables and classes, never through
properties or `__getattr__`; subscripts only on plain lists, tuples, dicts and module containers.
"""

from __future__ import annotations

import ast
import builtins
import operator
import types
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from types import FrameType
from typing import Any

from ...isolation.type_checks import class_attribute, is_a


class _Missing:
    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()

#: What a name is at the place asked about, or MISSING.
Named = Callable[[ast.Name], Any]
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_LONGEST_TEXT = 1000
_MOST_ROUNDS = 100
#: What gets an item out of the containers of Python itself.
_BUILT_IN = tuple(vars(kind)["__getitem__"] for kind in (list, tuple, deque, dict))
_KEYS = (int, str, bool, float, type(None))


def evaluate(node: ast.AST, named: Named) -> Any:
    """A path of names, attributes and items: `outs[i - 1]`, `getattr(model, f"w{i}")`.

    MISSING where a call, a property or a tensor's attribute would have to run.
    """
    if isinstance(node, ast.Name):
        return named(node)
    if isinstance(node, ast.Attribute):
        return attribute(evaluate(node.value, named), node.attr)
    if isinstance(node, ast.Subscript):
        key = evaluate(node.slice, named)
        return item(evaluate(node.value, named), key)
    if isinstance(node, ast.Call):
        return _call(node, named)
    return _plain(node, named)


def in_frame(node: ast.AST | None, frame: FrameType) -> Any:
    """What an expression is to a frame, or MISSING as with `evaluate`."""

    def named(name: ast.Name) -> Any:
        for table in (frame.f_locals, frame.f_globals):
            if name.id in table:
                return table[name.id]
        return builtin(name.id)

    return MISSING if node is None else evaluate(node, named)


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


def _call(node: ast.Call, named: Named) -> Any:
    """`getattr(x, name)`, `vars(x)`, `d.get(key)`, `len(d)`, `str(i)` of the plain kinds."""
    given = [evaluate(a, named) for a in node.args]
    if node.keywords or not given or given[0] is MISSING:
        return MISSING
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr == "get":
        return item(evaluate(function.value, named), given[0])
    name = function.id if isinstance(function, ast.Name) else ""
    if not isinstance(function, ast.Name) or named(function) is not builtin(name):
        return MISSING
    if name == "getattr" and len(given) > 1:
        return attribute(given[0], given[1]) if type(given[1]) is str else MISSING
    if name == "vars" and not is_tensor(given[0]):
        return own(given[0])
    if name == "len" and type(given[0]) in (list, tuple, dict, str):
        return len(given[0])
    if name == "str" and type(given[0]) in (int, str):
        return str(given[0])
    return MISSING


def _plain(node: ast.AST, named: Named) -> Any:
    """Literals, and what integers and short texts are put together to."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = evaluate(node.operand, named)
        return -inner if type(inner) is int else MISSING
    if isinstance(node, ast.BinOp):
        return _arithmetic(node, named)
    if isinstance(node, ast.JoinedStr):
        parts = [_part(p, named) for p in node.values]
        return "".join(parts) if all(type(p) is str for p in parts) else MISSING
    return MISSING


def _arithmetic(node: ast.BinOp, named: Named) -> Any:
    left, right = evaluate(node.left, named), evaluate(node.right, named)
    function = _ARITHMETIC.get(type(node.op))
    texts = type(left) is str and type(right) is str and isinstance(node.op, ast.Add)
    if function is None or not (texts or (type(left) is int and type(right) is int)):
        return MISSING
    if texts and len(left) + len(right) > _LONGEST_TEXT:
        return MISSING
    try:
        return function(left, right)
    except ZeroDivisionError:
        return MISSING


def _part(node: ast.expr, named: Named) -> Any:
    if isinstance(node, ast.FormattedValue):
        value = evaluate(node.value, named)
        known = type(value) in (int, str) and node.format_spec is None and node.conversion == -1
        return str(value) if known else MISSING
    return evaluate(node, named)


def attribute(base: Any, name: str) -> Any:
    """`base.name`, or MISSING where reading it could run code; of a tensor only its own data."""
    if base is MISSING or is_tensor(base):
        return own(base).get(name, MISSING)
    if is_a(base, types.ModuleType):
        # Lazy modules may import on access; what is not there yet is not the user's business.
        return vars(base).get(name, MISSING)
    held = own(base)
    if name in held:
        return held[name]
    found = class_attribute(base if is_a(base, type) else type(base), name, MISSING)
    if is_a(found, staticmethod) or is_a(found, classmethod):
        return found.__func__
    if is_a(found, types.FunctionType) and not is_a(base, type):
        return types.MethodType(found, base)
    gets = class_attribute(type(found), "__get__")
    if is_a(found, (property, types.GetSetDescriptorType)) or is_a(gets, types.FunctionType):
        return MISSING
    if is_a(found, types.MemberDescriptorType) and not is_a(base, type):
        try:
            return found.__get__(base)
        except AttributeError:
            return MISSING
    return found


def item(base: Any, key: Any) -> Any:
    """`base[key]` of a plain or module container by a plain key, or MISSING.

    A class that says itself what its items are is not asked.
    """
    if not _is_plain(key):
        return MISSING
    gets = class_attribute(type(base), "__getitem__")
    modules = _tables(base).get("_modules", {}) if _is_of_torch(gets) else {}
    held = list(modules.values()) if isinstance(key, int) else modules
    try:
        return gets(base, key) if any(gets is g for g in _BUILT_IN) else held[key]
    except (IndexError, KeyError, TypeError):
        return MISSING


def _is_plain(key: Any) -> bool:
    """Whether finding a key runs no `__hash__` or `__eq__` of the user's."""
    inner = key if type(key) is tuple else (key,)
    return all(type(k) in _KEYS for k in inner)


def _is_of_torch(function: Any) -> bool:
    module = function.__module__ if is_a(function, types.FunctionType) else ""
    return type(module) is str and module.startswith("torch.nn.modules.")


def builtin(name: str) -> Any:
    return vars(builtins).get(name, MISSING)


def own(base: Any) -> dict[str, Any]:
    """What an object itself holds by name, a torch module's parameters and children included."""
    if is_a(base, type):
        return {}
    tables = {k: v for table in _tables(base).values() for k, v in table.items()}
    return {**tables, **_held(base)}


def _held(base: Any) -> dict[str, Any]:
    try:
        held = object.__getattribute__(base, "__dict__")
    except AttributeError:
        return {}
    return held if type(held) is dict else {}  # a subclass may say itself what it holds


def _tables(base: Any) -> dict[str, dict[str, Any]]:
    """A torch module's parameters, buffers and children; {} for everything else."""
    held = _held(base)
    if "_modules" not in held or "_parameters" not in held:
        return {}
    names = ("_parameters", "_buffers", "_modules")
    return {n: held[n] for n in names if is_a(held.get(n), dict)}


def is_function(value: Any) -> bool:
    return is_a(value, types.FunctionType)


def is_tensor(value: Any) -> bool:
    import torch

    return is_a(value, torch.Tensor)


def is_module(value: Any) -> bool:
    import torch

    return is_a(value, torch.nn.Module)


def is_module_class(cls: type) -> bool:
    import torch

    return issubclass(cls, torch.nn.Module)
