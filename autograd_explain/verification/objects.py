"""Tensors and numbers reachable from names, and the way to each, without running user code.

A path is a tuple of steps.  `walk` lists what a namespace holds, `resolve` follows one path in
another run's namespace: two runs are compared by the reference's paths, so a rewrite that adds or
reorders names cannot mix them up.
"""

from __future__ import annotations

import dataclasses
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, MemberDescriptorType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import torch

from ..isolation.type_checks import elements, table_of
from ..program import is_library

MAX_OBJECTS = 20_000
MAX_DEPTH = 8
MAX_ITEMS = 2_000
_KEYS = (str, int, float, bool)
_NUMBERS = (int, float, complex)
_TORCH_MODULE_STATE = frozenset(vars(torch.nn.Module()))
_HIDDEN = {"In", "Out", "exit", "quit", "get_ipython", "display", "open"}


class PathStep(NamedTuple):
    """`kind` is name, attribute, item or module state (parameter, buffer, child)."""

    kind: str
    key: Any


Path = tuple[PathStep, ...]


def walk(namespace: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """Every path to a tensor, a number, an array or a list of numbers, nearest first.

    Each name is walked by itself: a value with two names has two paths.
    """
    budget = MAX_OBJECTS
    for name, value in list(namespace.items()):
        if isinstance(name, str) and not name.startswith("_") and name not in _HIDDEN:
            for path, found in _walk_from((PathStep("name", name),), value):
                budget -= 1
                if budget <= 0:
                    return
                yield path, found


def _walk_from(start: Path, root: Any) -> Iterator[tuple[Path, Any]]:
    waiting = deque([(start, root)])
    seen = {id(root)}
    while waiting:
        path, value = waiting.popleft()
        if is_value(value):
            yield path, value
            continue
        if len(path) > MAX_DEPTH:
            continue
        for step, child in children(value):
            if is_value(child) or id(child) not in seen:
                seen.add(id(child))
                waiting.append(((*path, step), child))


def resolve(path: Path, namespace: Mapping[str, Any]) -> Any:
    """What a path leads to in a namespace, None where it leads nowhere."""
    value: Any = namespace.get(path[0].key)
    for step in path[1:]:
        if value is None:
            return None
        value = _follow(step, value)
    return value


def holds_none(path: Path, namespace: Mapping[str, Any]) -> bool:
    """Whether a path leads to a None that is stored there, not to nothing."""
    holder = resolve(path[:-1], namespace) if path[1:] else namespace
    key = path[-1].key
    if isinstance(holder, (list, tuple, deque)):
        return isinstance(key, int) and any(v is None for v in elements(holder)[key : key + 1])
    tables: tuple[Any, ...] = (holder, getattr(holder, "__dict__", None))
    if isinstance(holder, torch.nn.Module):
        tables = (holder._parameters, holder._buffers, holder._modules, vars(holder))
    return any(isinstance(t, dict) and dict.get(t, key, t) is None for t in tables)


def is_value(value: Any) -> bool:
    """Whether it is compared as a whole."""
    if isinstance(value, (torch.Tensor, *_NUMBERS)) or is_array(value):
        return True
    return is_number_list(value)


def is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, (numpy.ndarray, numpy.generic)):
        return False
    return value.dtype.kind in "biufc"


def is_number_list(value: Any) -> bool:
    if type(value) not in (list, tuple) or not value:
        return False
    return all(isinstance(v, _NUMBERS) for v in value)


def children(value: Any) -> Iterator[tuple[PathStep, Any]]:
    """What an object holds, in an order that does not depend on the run."""
    if isinstance(value, torch.nn.Module):
        yield from _module_children(value)
    elif isinstance(value, torch.optim.Optimizer):
        yield PathStep("attribute", "param_groups"), value.param_groups
    elif isinstance(value, Mapping):
        yield from _mapping_children(value)
    elif isinstance(value, (list, tuple, deque)):
        for index, item in enumerate(elements(value, MAX_ITEMS)):
            yield PathStep("item", index), item
    elif _is_open(value):
        yield from _attributes(value)


def _follow(step: PathStep, value: Any) -> Any:
    if step.kind == "item":
        if isinstance(value, Mapping):
            return dict.get(value, step.key) if isinstance(value, dict) else None
        if isinstance(value, (list, tuple, deque)) and isinstance(step.key, int):
            return next(iter(elements(value)[step.key : step.key + 1]), None)
        return None
    if step.kind == "state" and isinstance(value, torch.nn.Module):
        for table in (value._parameters, value._buffers, value._modules):
            if step.key in table:
                return table[step.key]
    return _attribute(value, step.key)


def _module_children(module: torch.nn.Module) -> Iterator[tuple[PathStep, Any]]:
    for table in (module._parameters, module._buffers, module._modules):
        for name, child in list(table.items()):
            if child is not None:
                yield PathStep("state", name), child
    if type(module).__module__.startswith("torch."):
        return  # the rest is how it was built (`inplace`), not what the program computes
    for name, child in list(vars(module).items()):
        if name not in _TORCH_MODULE_STATE:
            yield PathStep("attribute", name), child


def _mapping_children(mapping: Mapping[Any, Any]) -> Iterator[tuple[PathStep, Any]]:
    if not isinstance(mapping, dict):
        return
    for key, child in list(dict.items(mapping))[:MAX_ITEMS]:
        if isinstance(key, _KEYS):
            yield PathStep("item", key), child


def _is_open(value: Any) -> bool:
    """Objects of the program's own classes, and such that only hold data."""
    if isinstance(value, (ModuleType, FunctionType)):
        return False
    kind = value if isinstance(value, type) else type(value)
    if kind is SimpleNamespace or (dataclasses.is_dataclass(kind) and kind is not value):
        return True
    module = getattr(kind, "__module__", None)
    if module in (None, "builtins"):
        return False
    if module == "__main__" or str(module).startswith("torch.distributions"):
        return True
    file = table_of(sys.modules.get(str(module))).get("__file__")
    return file is not None and not is_library(file)


def _attributes(value: Any) -> Iterator[tuple[PathStep, Any]]:
    for name, child in sorted(getattr(value, "__dict__", {}).items()):
        if not name.startswith("__"):
            yield PathStep("attribute", name), child
    for kind in () if isinstance(value, type) else type(value).__mro__:
        for name, descriptor in vars(kind).items():
            if isinstance(descriptor, MemberDescriptorType):
                child = _attribute(value, name)
                if child is not None:
                    yield PathStep("attribute", name), child


def _attribute(value: Any, name: str) -> Any:
    """An attribute that is stored, not computed."""
    found = getattr(value, "__dict__", {}).get(name)
    if found is not None:
        return found
    if isinstance(value, torch.optim.Optimizer):
        return None
    descriptor = next((vars(k)[name] for k in type(value).__mro__ if name in vars(k)), None)
    if not isinstance(descriptor, MemberDescriptorType):
        return None
    get: Callable[[Any, type], Any] = descriptor.__get__
    try:
        return get(value, type(value))
    except AttributeError:
        return None


def spelled(path: Path) -> str:
    """A path as the user would write it."""
    text = str(path[0].key)
    for step in path[1:]:
        if step.kind == "item":
            text += f"[{step.key!r}]"
        elif str(step.key).isdigit():
            text += f"[{step.key}]"
        else:
            text += f".{step.key}"
    return text


def names_in(namespace: Mapping[str, Any]) -> dict[int, str]:
    """The best name of each tensor within reach, by the tensor's identity."""
    return {at: names[0] for at, names in spellings_in(namespace).items()}


def spellings_in(namespace: Mapping[str, Any]) -> dict[int, list[str]]:
    """Every name of each tensor within reach, the best first."""
    found: dict[int, list[str]] = {}
    for path, value in walk(namespace):
        found.setdefault(id(value), []).append(spelled(path))
    return {at: sorted(names, key=rank) for at, names in found.items()}


def rank(name: str) -> tuple[bool, bool, int, int]:
    """The user's own names before an optimizer's list of them, short ones before long ones."""
    return (".param_groups" in name, "['" in name, name.count(".") + name.count("["), len(name))
