"""What was stored in an attribute, wherever the program stores it."""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...program import Source
from . import live
from .bindings import FUNCTIONS, Body, Part, key_of
from .names import from_key
from .spots import Scope, Spot
from .syntax import (
    bodies,
    definition,
    first_parameter,
    is_none,
    returns,
    statements_of,
    stored,
)

if TYPE_CHECKING:
    from .walker import Walker


def from_attribute(walker: Walker, spot: Spot, node: ast.Attribute) -> list[Spot]:
    """What an attribute was bound to here, stored in by the program, or constructed with; what
    a property returns."""
    key = key_of(node)
    direct = from_key(walker, spot, key) if key is not None else []
    if direct:
        return direct
    base = Spot(spot.scope, node.value)
    owner = walker.value(base)
    if live.is_tensor(owner) or isinstance(owner, (types.ModuleType, type)):
        return []
    if owner is not live.MISSING:
        getter = _getter(type(owner), node.attr)
        if getter is not None:
            return _from_getter(walker, getter, owner, spot.path)
    stores = [s for s in walker.stores(owner, node.attr) if not is_none(s.node)]
    if stores:
        return [Spot(s.scope, s.node, (*s.path, *spot.path)) for s in stores]
    return _from_constructor(walker, base, node.attr, spot.path)


def _from_constructor(walker: Walker, base: Spot, attr: str, path: tuple[Part, ...]) -> list[Spot]:
    """`Batch(image=x).image` is x."""
    found = []
    for maker in walker.makers(base):
        if isinstance(maker.node, ast.Call) and not maker.path:
            found += [
                Spot(maker.scope, k.value, path) for k in maker.node.keywords if k.arg == attr
            ]
    return found


def _getter(cls: type, name: str) -> types.FunctionType | None:
    """The function behind a property (or cached property) of a class."""
    found = live.class_attribute(cls, name)
    function = found.fget if isinstance(found, property) else getattr(found, "func", None)
    plain = isinstance(found, (property, functools.cached_property))
    while isinstance(getattr(function, "__wrapped__", None), types.FunctionType):
        function = function.__wrapped__  # type: ignore[union-attr]  # decorated: `@torch.no_grad()`
    return function if plain and isinstance(function, types.FunctionType) else None


def _from_getter(
    walker: Walker, getter: types.FunctionType, owner: Any, path: tuple[Part, ...]
) -> list[Spot]:
    """What a property of the user's class returns; nothing for a library's."""
    source = walker.program.source(getter.__code__.co_filename)
    found = None if source is None else definition(source, getter.__code__)
    if found is None:
        return []
    scope = Scope(*found, {first_parameter(found[1]): owner}, None, owner)
    return [Spot(scope, value, path) for value in returns(scope.body)]


def stores(walker: Walker, owner: Any, attr: str) -> list[Spot]:
    """The values that the program's statements store in `.attr`, newest source first.

    Where the owner is known, only methods of its class (through `self`) and statements
    outside of classes count.
    """
    found: list[Spot] = []
    for source in walker.sources(owner):
        for body in bodies(source.tree):
            found.extend(_stores_in(walker, source, body, owner, attr))
    return found


def _stores_in(walker: Walker, source: Source, body: Body, owner: Any, attr: str) -> Iterator[Spot]:
    index = walker.index(source)
    cls = index.class_of(body)
    own = isinstance(body, FUNCTIONS) and cls is not None and _is_class(owner, cls)
    for statement in statements_of(body):
        for target, value, path in stored(statement):
            if not (isinstance(target, ast.Attribute) and target.attr == attr):
                continue
            by_self = isinstance(target.value, ast.Name) and target.value.id == "self"
            if by_self and not own and owner is not live.MISSING:
                continue
            yield Spot(walker.scope_of(source, body, owner if own else None), value, path)


def _is_class(owner: Any, cls: ast.ClassDef) -> bool:
    kind = owner if isinstance(owner, type) else type(owner)
    return owner is live.MISSING or any(c.__name__ == cls.name for c in kind.__mro__)
