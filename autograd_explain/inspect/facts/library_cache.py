"""Values that objects of installed packages compute once and keep, and the options that say so."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import torch

from ...isolation.type_checks import is_a, items, table_of
from ...model import Place
from ...program import is_of_package
from ..live.class_source import parsed
from ..scene import Scene


def options_of(scene: Scene, owner: Any, attribute: str) -> Iterator[tuple[Place, str]]:
    """The options switched on where such objects are made that the attribute is named after:
    `cached=True` for `_cached_edge_index`."""
    for source, call in scene.index.calls(type(owner).__name__):
        for given in call.keywords:
            on = isinstance(given.value, ast.Constant) and given.value.value is True
            if on and given.arg and given.arg in attribute and table_of(owner).get(given.arg):
                yield scene.slicer.place(scene.slicer.at(source, call)), given.arg


def is_cache(owner: Any, attribute: str) -> bool:
    """Whether the class sets the attribute to None, and else to what is not computed from it."""
    tree = parsed(type(owner))
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
    asked = any(
        isinstance(n, ast.Compare)
        and isinstance(n.ops[0], (ast.Is, ast.IsNot))
        and getattr(n.left, "attr", "") == attribute
        for n in ast.walk(tree)
    )
    itself = any(getattr(n, "attr", "") == attribute for _, v in pairs for n in ast.walk(v))
    return bool(empty) and asked and not itself and len(pairs) > len(empty)


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


def caching_options(scene: Scene) -> tuple[tuple[Place, str], ...]:
    """The options by which modules of packages keep a value without a graph, wherever the program
    makes them: `cached=True`."""
    found: dict[tuple[Place, str], None] = {}
    for _, module in scene.names.held_modules:
        for attribute, value in items(table_of(module)) if is_of_package(type(module)) else ():
            values = value if isinstance(value, tuple) else (value,)
            kept = [v for v in values if is_a(v, torch.Tensor) and v.is_floating_point()]
            if kept and all(v.grad_fn is None for v in kept):
                found |= dict.fromkeys(options_of(scene, module, attribute))
    return tuple(found)
