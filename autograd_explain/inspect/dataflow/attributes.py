"""What was stored in an attribute, wherever the program stores it."""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Iterator
from typing import Any

from ...isolation.type_checks import class_attribute
from ...program import Source
from ...program_index import index_of
from . import safe_lookup
from .expression import ExprAt, Scope
from .names import from_key
from .protocol import Slicing
from .reaching_definitions import FUNCTIONS, Body, Part, key_of
from .syntax import bodies, definition, first_parameter, is_none, returns, statements_of, stored


def from_attribute(slicer: Slicing, spot: ExprAt, node: ast.Attribute) -> list[ExprAt]:
    """What an attribute was bound to here, stored in by the program, or constructed with; what
    a property returns."""
    key = key_of(node)
    direct = from_key(slicer, spot, key) if key is not None else []
    if direct:
        return direct
    base = ExprAt(spot.scope, node.value)
    owner = slicer.value(base)
    if safe_lookup.is_tensor(owner) or isinstance(owner, (types.ModuleType, type)):
        return []
    if owner is not safe_lookup.MISSING:
        getter = _getter(type(owner), node.attr)
        if getter is not None:
            return _from_getter(slicer, getter, owner, spot.path)
    stores = [s for s in slicer.stores(owner, node.attr) if not is_none(s.node)]
    if stores:
        return [ExprAt(s.scope, s.node, (*s.path, *spot.path)) for s in stores]
    return _from_constructor(slicer, base, node.attr, spot.path)


def _from_constructor(
    slicer: Slicing, base: ExprAt, attr: str, path: tuple[Part, ...]
) -> list[ExprAt]:
    """`Batch(image=x).image` is x."""
    found = []
    for maker in slicer.makers(base):
        if isinstance(maker.node, ast.Call) and not maker.path:
            found += [
                ExprAt(maker.scope, k.value, path) for k in maker.node.keywords if k.arg == attr
            ]
    return found


def _getter(cls: type, name: str) -> types.FunctionType | None:
    """The function behind a property (or cached property) of a class."""
    found = class_attribute(cls, name)
    function = found.fget if isinstance(found, property) else getattr(found, "func", None)
    plain = isinstance(found, (property, functools.cached_property))
    while isinstance(getattr(function, "__wrapped__", None), types.FunctionType):
        function = function.__wrapped__  # type: ignore[union-attr]  # decorated: `@torch.no_grad()`
    return function if plain and isinstance(function, types.FunctionType) else None


def _from_getter(
    slicer: Slicing, getter: types.FunctionType, owner: Any, path: tuple[Part, ...]
) -> list[ExprAt]:
    """What a property of the user's class returns; nothing for a library's."""
    source = slicer.program.source_of(getter.__code__)
    found = None if source is None else definition(source, getter.__code__)
    if found is None:
        return []
    scope = Scope(*found, {first_parameter(found[1]): owner}, None, owner)
    return [ExprAt(scope, value, path) for value in returns(scope.body)]


def stores(slicer: Slicing, owner: Any, attr: str) -> list[ExprAt]:
    """The values that the program's statements store in `.attr`, newest source first.

    Where the owner is known, only methods of its class (through `self`) and statements
    outside of classes count.
    """
    found: list[ExprAt] = []
    index = index_of(slicer.program)
    for source in slicer.sources(owner):
        for body in filter(index.lives, bodies(source.tree)):
            found.extend(_stores_in(slicer, source, body, owner, attr))
    return found


def _stores_in(
    slicer: Slicing, source: Source, body: Body, owner: Any, attr: str
) -> Iterator[ExprAt]:
    index = slicer.index(source)
    cls = index.class_of(body)
    own = isinstance(body, FUNCTIONS) and cls is not None and _is_class(slicer, owner, cls)
    for statement in statements_of(body):
        for target, value, path in stored(statement):
            if not (isinstance(target, ast.Attribute) and target.attr == attr):
                continue
            by_self = isinstance(target.value, ast.Name) and target.value.id == "self"
            if by_self and not own and owner is not safe_lookup.MISSING:
                continue
            yield ExprAt(slicer.scope_of(source, body, owner if own else None), value, path)


def _is_class(slicer: Slicing, owner: Any, cls: ast.ClassDef) -> bool:
    kind = owner if isinstance(owner, type) else type(owner)
    return owner is safe_lookup.MISSING or index_of(slicer.program).is_class(kind, cls)
