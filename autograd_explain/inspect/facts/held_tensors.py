"""What an object keeps with its graph, wherever in it that lies.

Attributes are read from instance dictionaries and slots, items from the containers of Python itself
and from module tables; no property, no `__getattr__` and no method of the object's class runs.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice, pairwise
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import torch

from ...isolation.type_checks import bases, class_table, elements, is_a, items, table_of

_MAX_OBJECTS = 20_000
_MAX_ITEMS = 500
_MAX_DEPTH = 12
_SECONDS = 0.3
_CLOSED = (type, ModuleType, FunctionType, MethodType, str, bytes, torch.Size, torch.dtype)
_OF_TORCH = frozenset(vars(torch.nn.Module()))
_INDEXED = (torch.nn.Sequential, torch.nn.ModuleList)


class Way(Enum):
    """How a part is reached from what holds it."""

    ATTRIBUTE = "attribute"
    ITEM = "item"  #: of a list, a tuple, a deque, a ModuleList
    KEY = "key"  #: of a dict, a ModuleDict


@dataclass(eq=False)
class Held:
    """An object, and those of its parts that keep tensors with a graph; such a tensor has none."""

    value: Any
    way: Way | None = None  #: None for the object asked about
    key: Any = None
    parts: list[Held] = field(default_factory=list)
    alike: tuple[torch.Tensor, ...] = ()  #: what stands in its place in objects beside its own

    @property
    def step(self) -> str:
        """What is written behind the holder's name: `.keys`, `[0]`, `['a']`."""
        return "" if self.way is None else f".{self.key}" if _is_named(self) else f"[{self.key!r}]"

    def tensors(self, path: str = "") -> Iterator[tuple[str, torch.Tensor]]:
        """The tensors with the ways to them, as they are written behind the object's name."""
        if is_a(self.value, torch.Tensor):
            yield path, self.value
        for part in self.parts:
            yield from part.tensors(path + part.step)

    def only(self, wanted: Callable[[tuple[Held, ...]], bool]) -> Held | None:
        """The same with those tensors alone whose chain, from the object to the tensor, is wanted;
        None without any."""
        return _only((self,), wanted)

    def chains(self) -> Iterator[tuple[Held, ...]]:
        """The way to each tensor: the object, what is in it, the tensor."""
        if not self.parts:
            yield (self,)
        for part in self.parts:
            yield from ((self, *rest) for rest in part.chains())


def held_tensors(value: Any) -> Held | None:
    """What an object keeps with its graph; None for nothing, or more than is looked at."""
    stop, root = time.monotonic() + _SECONDS, Held(value)
    queue: deque[tuple[Held, tuple[Held, ...]]] = deque([(root, ())])
    seen, kept = set(), {id(root)} if has_graph(value) else set()
    while queue:
        node, above = queue.popleft()
        if has_graph(node.value):
            _keep((*above, node), kept)
            continue
        if id(node.value) in seen or len(above) >= _MAX_DEPTH:
            continue
        seen.add(id(node.value))
        if len(seen) > _MAX_OBJECTS or time.monotonic() > stop:
            return None
        queue.extend((part, (*above, node)) for part in _parts(node.value))
    return root if id(root) in kept else None


def has_graph(value: Any) -> bool:
    """Whether it is a tensor that is the result of a recorded operation."""
    return is_a(value, torch.Tensor) and not value.is_leaf


def _keep(chain: tuple[Held, ...], kept: set[int]) -> None:
    for above, part in pairwise(chain):
        kept.add(id(above))
        if id(part) not in kept:
            kept.add(id(part))
            above.parts.append(part)


def _only(chain: tuple[Held, ...], wanted: Callable[[tuple[Held, ...]], bool]) -> Held | None:
    node = chain[-1]
    if not node.parts:
        return node if wanted(chain) else None
    parts = [p for part in node.parts if (p := _only((*chain, part), wanted)) is not None]
    return Held(node.value, node.way, node.key, parts) if parts else None


def _is_named(part: Held) -> bool:
    return part.way is Way.ATTRIBUTE


def _parts(value: Any) -> Iterator[Held]:
    if is_a(value, _CLOSED) or is_a(value, torch.Tensor):
        return
    if is_a(value, torch.nn.Module):
        yield from _of_module(value)
    elif is_a(value, dict):
        yield from (Held(v, Way.KEY, k) for k, v in islice(items(value), _MAX_ITEMS))
    elif is_a(value, (list, tuple, deque)):
        whole = enumerate(elements(value, _MAX_ITEMS))
        yield from (Held(item, Way.ITEM, i) for i, item in whole)
    yield from _attributes(value)


def _of_module(module: torch.nn.Module) -> Iterator[Held]:
    own = table_of(module)
    way = Way.ITEM if is_a(module, _INDEXED) else Way.ATTRIBUTE
    for table in ("_buffers", "_modules"):
        for name, value in items(own.get(table, {})):
            if way is Way.ITEM and table == "_modules":
                yield Held(value, Way.ITEM, int(name) if name.isdigit() else name)
            elif is_a(module, torch.nn.ModuleDict) and table == "_modules":
                yield Held(value, Way.KEY, name)
            else:
                yield Held(value, Way.ATTRIBUTE, name)


def _attributes(value: Any) -> Iterator[Held]:
    own = islice(items(table_of(value)), _MAX_ITEMS)
    hidden = _OF_TORCH if is_a(value, torch.nn.Module) else frozenset[str]()
    for name, part in own:
        if type(name) is str and name.isidentifier() and name not in hidden:
            yield Held(part, Way.ATTRIBUTE, name)
    for kind in bases(type(value)):
        for name, member in list(class_table(kind).items()):
            if type(member) is MemberDescriptorType and not _is_private(name):
                try:
                    yield Held(member.__get__(value), Way.ATTRIBUTE, name)
                except AttributeError:
                    continue


def _is_private(name: str) -> bool:
    return name.startswith("__")
