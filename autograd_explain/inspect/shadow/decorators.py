"""Which decorators of a library's definition are part of what the program calls.

A decorator that wrote a docstring or filled a registry has given back what it was given: the loaded
function is the definition's own.  Running it again would take long and lead nowhere.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator, Mapping
from typing import Any

from ...isolation.type_checks import is_a
from .policy import PURE

_HOLDERS = {property: "fget", staticmethod: "__func__", classmethod: "__func__"}


def without_traceless(definition: ast.stmt, names: Mapping[str, Any]) -> None:
    """Takes the decorators that left no trace off a definition and those in it; `names` is what
    its module, as it is loaded, holds."""
    _strip(definition, names, names)


def _strip(node: ast.stmt, held: Mapping[str, Any], names: Mapping[str, Any]) -> None:
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    live = held.get(node.name)
    own = [d for d in node.decorator_list if _is_own(d, names)]
    if own:
        kept = [] if isinstance(node, ast.ClassDef) else _kept(own, list(_wrappers(live)))
        node.decorator_list = [d for d in node.decorator_list if d in kept or d not in own]
    if isinstance(node, ast.ClassDef) and is_a(live, type):
        for statement in node.body:
            _strip(statement, vars(live), names)


def _kept(decorators: list[ast.expr], wrappers: list[types.FunctionType]) -> list[ast.expr]:
    """Those that left a wrapper; where that cannot be told apart, all."""
    makers = {_maker(wrapper) for wrapper in wrappers}
    known = [d for d in decorators if _name(d).rpartition(".")[2] in makers]
    return known if len(known) == len(wrappers) else decorators


def _wrappers(live: Any) -> Iterator[types.FunctionType]:
    """The functions of libraries around a definition's own."""
    for holder, name in _HOLDERS.items():
        if type(live) is holder:
            live = getattr(live, name)
    for _ in range(20):
        inner = vars(live).get("__wrapped__") if is_a(live, types.FunctionType) else None
        if inner is None:
            return
        if not _is_pure(live.__globals__.get("__name__")):
            yield live
        live = inner


def _maker(wrapper: types.FunctionType) -> str:
    """The decorator that defines a wrapper inside."""
    return str(getattr(wrapper.__code__, "co_qualname", "")).partition(".")[0]


def _is_own(decorator: ast.expr, names: Mapping[str, Any]) -> bool:
    """Whether an installed package defines it: those of torch and Python's own always count."""
    first, *path = _name(decorator).split(".")
    found: Any = names.get(first)
    if not is_a(found, (types.ModuleType, types.FunctionType, type)):
        return False
    if is_a(found, types.ModuleType) and path:
        found = vars(found).get(path[0], found)
    return not _is_pure(getattr(found, "__module__", None) or found.__name__)


def _is_pure(module: Any) -> bool:
    root = str(module).partition(".")[0]
    return root in PURE or root == "builtins"


def _name(decorator: ast.expr) -> str:
    """A decorator's name as it is written, without its call."""
    return ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)
