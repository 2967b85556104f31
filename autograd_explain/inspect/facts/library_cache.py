"""Values that objects of installed packages compute once and keep, and the options that say so."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import FunctionType
from typing import Any

import torch

from ...isolation.type_checks import bases, is_a, items, table_of
from ...model import Place
from ...program import is_of_package
from ..dataflow.reaching_definitions import Each
from ..dataflow.syntax import inserted
from ..live.class_source import function_node, parsed
from ..live.names import without_item
from ..scene import Scene
from .container_puts import live_object

_DEPTH = 3  #: calls that a method leaves the emptying to


def options_of(scene: Scene, owner: Any, attribute: str) -> Iterator[tuple[Place, str]]:
    """The options switched on where such objects are made that the attribute is named after:
    `cached=True` for `_cached_edge_index`."""
    for source, call in scene.index.calls(type(owner).__name__):
        for given in call.keywords:
            on = isinstance(given.value, ast.Constant) and given.value.value is True
            if on and given.arg and given.arg in attribute and table_of(owner).get(given.arg):
                yield scene.slicer.place(scene.slicer.at(source, call)), given.arg


def keeps_for(owner: Any, attribute: str) -> type | None:
    """The class of a package that gives the attribute of an object its values: the object's own,
    or one that the user's class is derived from."""
    kind = type(owner)
    if is_of_package(kind):
        return kind
    setting = (k for k in bases(kind) if k is not torch.nn.Module and any(setters(k, attribute)))
    first = next(setting, None)
    return first if first is not None and is_of_package(first) else None


def is_cache(owner: Any, attribute: str) -> bool:
    """Whether the class sets the attribute to None, and else to what is not computed from it, or
    hands it out as it is where it is not None."""
    tree = parsed(keeps_for(owner, attribute) or type(owner))
    if tree is None:
        return False
    pairs = [
        (target, value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target, value in _pairs(node)
        if isinstance(target, ast.Attribute) and target.attr == attribute
    ]
    empty = [v for _, v in pairs if isinstance(v, ast.Constant) and v.value is None]
    asked = [n for n in ast.walk(tree) if isinstance(n, ast.Compare) and _asks(n, attribute)]
    itself = any(getattr(n, "attr", "") == attribute for _, v in pairs for n in ast.walk(v))
    handed_out = any(
        isinstance(n, ast.If)
        and n.test in asked
        and any(isinstance(s, ast.Return) and _is_of(s.value, attribute) for s in n.body)
        for n in ast.walk(tree)
    )
    computes = handed_out or not itself
    return bool(empty) and bool(asked) and computes and len(pairs) > len(empty)


def _asks(test: ast.Compare, attribute: str) -> bool:
    return isinstance(test.ops[0], (ast.Is, ast.IsNot)) and _is_of(test.left, attribute)


def _is_of(node: ast.expr | None, attribute: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == attribute


def setters(kind: type, attribute: str) -> Iterator[tuple[ast.FunctionDef, list[ast.expr]]]:
    """The methods in a class's own text that set an attribute, each with the values."""
    tree = parsed(kind)
    for method in ast.walk(tree) if tree is not None else ():
        inside = [n for n in ast.walk(method) if isinstance(n, ast.Assign)]
        pairs = [pair for node in inside for pair in _pairs(node)]
        values = [v for target, v in pairs if ast.unparse(target) == f"self.{attribute}"]
        if isinstance(method, ast.FunctionDef) and values:
            yield method, values


def _pairs(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`a, b = c, d` taken apart."""
    for target in node.targets:
        left, right = getattr(target, "elts", [target]), getattr(node.value, "elts", [node.value])
        yield from zip(left, right, strict=True) if len(left) == len(right) else ()


def caching_options(scene: Scene, *, graph: bool = False) -> tuple[tuple[Place, str], ...]:
    """The options by which modules of packages keep a value without a graph, or with one, wherever
    the program makes them: `cached=True`."""
    found: dict[tuple[Place, str], None] = {}
    for _, module in scene.names.held_modules:
        for attribute, value in items(table_of(module)) if is_of_package(type(module)) else ():
            values = value if isinstance(value, tuple) else (value,)
            kept = [v for v in values if is_a(v, torch.Tensor) and v.is_floating_point()]
            if kept and all((v.grad_fn is not None) is graph for v in kept):
                found |= dict.fromkeys(options_of(scene, module, attribute))
    return tuple(found)


def emptied_by_train(scene: Scene, names: Iterable[str]) -> torch.nn.Module | None:
    """The module in eval mode that has a value by one of these names, `gp.strategy.kept`, and
    empties what leads to it when it is put into training mode."""
    for name in names:
        path, rest = without_item(name), ""
        while "." in path:
            path, _, rest = path.rpartition(".")
            owner = live_object(scene, path)
            if is_a(owner, torch.nn.Module) and not owner.training:
                kept = without_item(rest)
                empties = partial(_empties, kept)
                kind = type(owner)
                if any(_does(m, kind, _DEPTH, empties) for m in _methods(kind, "train")):
                    return owner
    return None


def puts_into(kind: type, method: str, attribute: str) -> bool:
    """Whether a method of a class's, or what it calls, puts something into a container that the
    objects have as an attribute, or gives that another value than an empty one."""

    def puts(node: ast.AST) -> bool:
        if isinstance(node, ast.Assign):
            given = (v for target, v in _pairs(node) if ast.unparse(target) == key)
            return any(not _is_empty(v) for v in given) or any(inserted(node, key, Each.ITEM))
        return isinstance(node, ast.Expr) and any(inserted(node, key, Each.ITEM))

    key = f"self.{attribute}"
    return any(_does(f, kind, _DEPTH, puts) for f in _methods(kind, method))


def holds_in_eval(whole: Any, part: torch.nn.Module | None) -> bool:
    """Whether a module has this one in it, or is it, and all of it is in eval mode, so that putting
    it into training mode and back leaves every mode as it was."""
    modules = list(whole.modules()) if is_a(whole, torch.nn.Module) else []
    return any(m is part for m in modules) and not any(m.training for m in modules)


def _methods(kind: type, name: str) -> Iterator[FunctionType]:
    """All of a name that its classes define, which call each other; torch's own aside."""
    found = (vars(each).get(name) for each in bases(kind) if each is not torch.nn.Module)
    return (method for method in found if isinstance(method, FunctionType))


def _empties(attribute: str, node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and any(
        getattr(target, "attr", "") == attribute and _is_empty(value)
        for target, value in _pairs(node)
    )


def _does(function: FunctionType, kind: type, depth: int, what: Callable[[ast.AST], bool]) -> bool:
    """Whether a method of a class's, or a function that it hands the object, does it: in its own
    text, or in what it calls."""
    node = function_node(function)
    for inside in () if node is None else ast.walk(node):
        if what(inside):
            return True
        if isinstance(inside, ast.Call) and depth:
            called = _called(function, inside, kind)
            if called is not None and _does(called, kind, depth - 1, what):
                return True
    return False


def _called(function: FunctionType, call: ast.Call, kind: type) -> FunctionType | None:
    """`self.clear()` of a class, or `clear(self)` of a module."""
    if ast.unparse(call.func).startswith("self.") and isinstance(call.func, ast.Attribute):
        found = next((vars(k)[call.func.attr] for k in bases(kind) if call.func.attr in vars(k)), 0)
    else:
        given = [ast.unparse(a) for a in call.args]
        name = call.func.id if isinstance(call.func, ast.Name) and given == ["self"] else ""
        found = function.__globals__.get(name, 0)
    return found if isinstance(found, FunctionType) else None


def _is_empty(value: ast.expr) -> bool:
    """`None`, `{}` or `[]`"""
    none = isinstance(value, ast.Constant) and value.value is None
    shown = isinstance(value, (ast.Dict, ast.List)) and not list(ast.iter_child_nodes(value))
    return none or shown
