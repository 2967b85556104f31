"""Stand-ins for live objects, where the source does not tell how they were made.

A stand-in of a tensor has its shape, dtype and role (leaf, parameter) and storage of its own;
containers, modules and instances are rebuilt around stand-ins.  Nothing live is handed out that
could be changed.
"""

from __future__ import annotations

import contextvars
import enum
import sys
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import torch

from ...isolation.type_checks import (
    bases,
    class_attribute,
    class_table,
    elements,
    is_a,
    items,
    table_of,
)
from ...program import is_installed, is_of_package
from .policy import Policy, is_twin_class
from .replacements import ContextVariable
from .unknown import UNKNOWN

_PLAIN = (
    int, float, complex, str, bytes, bool, type(None), type(...), range, slice, torch.dtype,
    torch.device, torch.Size, torch.layout, torch.memory_format,
)  # fmt: skip
_LIMIT = 1000  # items of a container
_PARTS = frozenset(("_modules", "_parameters", "_buffers"))
_DEPTH = 8  # of objects in objects; a module in a module counts as the first


_FUNCTIONS = (
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
    types.ClassMethodDescriptorType, types.GetSetDescriptorType,
)  # fmt: skip


def _is_stateless(live: Any) -> bool:
    """Built-in functions that are bound to nothing of the user's, NumPy's dtypes and numbers.

    An iterator, a generator of numbers or `rows.append` has state that using it would change.
    """
    if is_a(live, _FUNCTIONS):
        owner = getattr(live, "__self__", None)
        return owner is None or is_a(owner, (types.ModuleType, type))
    numpy: Any = sys.modules.get("numpy")
    return numpy is not None and is_a(live, (numpy.dtype, numpy.generic, numpy.ufunc))


def _has_graph(value: Any, depth: int = 2) -> bool:
    """Whether it is, or holds, a tensor that was computed from what requires grad."""
    if is_a(value, torch.Tensor):
        return value.requires_grad and not value.is_leaf
    if depth and type(value) in (list, tuple, dict):
        parts = list(value.values()) if type(value) is dict else value
        return any(_has_graph(part, depth - 1) for part in parts[:8])
    return False


class _Table:
    """What an object takes that has nothing beside its attributes."""


def _state(live: Any) -> Mapping[str, Any]:
    """An object's attributes, those in slots too."""
    found = dict(table_of(live))
    for base in bases(type(live)):
        for name, slot in class_table(base).items():
            if is_a(slot, types.MemberDescriptorType):
                with suppress(AttributeError):  # nothing was assigned
                    found.setdefault(name, slot.__get__(live))
    return found


def _numpys_generator(kind: str) -> Any:
    """A generator of numbers of its own."""
    numpy: Any = sys.modules["numpy"]
    if kind == "RandomState":
        return numpy.random.RandomState(0)
    return numpy.random.default_rng(0) if kind == "Generator" else UNKNOWN


def part_of(live: Any, name: str) -> Any:
    """What an object holds under a name, None without; nothing of its class is asked."""
    found = table_of(live)
    if is_a(live, torch.nn.Module):
        for part in _PARTS:
            if name in found.get(part, {}):
                return found[part][name]
    return found.get(name)


class Substitutes:
    """Makes stand-ins; one live object has one stand-in."""

    def __init__(
        self, policy: Policy, twin: Callable[[Any], Any], make: Callable[[torch.Tensor], Any]
    ) -> None:
        self._policy = policy
        self._twin = twin
        self._make = make
        self._memo: dict[int, tuple[Any, Any]] = {}

    def pairs(self) -> list[tuple[Any, Any]]:
        """Live objects and their stand-ins."""
        return list(self._memo.values())

    def match(self, live: Any, twin: Any) -> None:
        """An object that the walk has made is the live one's stand-in from now on."""
        self._memo[id(live)] = live, twin
        unknown = [n for n, v in table_of(twin).items() if v is UNKNOWN]
        if unknown:
            self._give(live, twin, unknown)

    def complete(self, live: Any, twin: Any) -> None:
        """Gives a stand-in, which a library was to begin, what it lacks of the live object's."""
        own = table_of(twin)
        state = _state(live)
        lacking = [n for n in state if own.get(n, UNKNOWN) is UNKNOWN and not _has_graph(state[n])]
        self._give(live, twin, lacking)

    def _give(self, live: Any, twin: Any, names: list[str]) -> None:
        state, own = _state(live), table_of(twin)
        for name in names:
            if name in state:
                object.__setattr__(twin, name, self._attribute(name, state[name]))
        if is_a(live, torch.nn.Module) and is_a(twin, torch.nn.Module):
            for part in _PARTS:
                for name, value in list(state.get(part, {}).items()):
                    missing = own.get(name, UNKNOWN) is UNKNOWN
                    if name not in own.get(part, {}) and missing:
                        own.pop(name, None)
                        own[part][name] = self.adopt(value)

    def _attribute(self, name: str, value: Any, depth: int = _DEPTH) -> Any:
        if "hooks" in name and isinstance(value, dict):
            return type(value)(self._hooks(value))
        try:
            return self.adopt(value, depth)
        except Exception:  # an object of somebody's may answer anything
            return UNKNOWN

    def _hooks(self, live: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
        """A module's hooks that are a library's functions (transformers collects `hidden_states` by
        such).  The user's are left out: they refer to the live module."""
        for key, value in list(items(live)):
            own = is_a(value, types.FunctionType) and is_installed(value.__code__.co_filename)
            twin = self._twin(value) if own else UNKNOWN
            if twin is not UNKNOWN:
                yield key, twin

    def adopt(self, live: Any, depth: int = _DEPTH) -> Any:
        """The stand-in of a live object, or UNKNOWN."""
        if is_a(live, _PLAIN) and type(live).__module__ in ("builtins", "torch"):
            return live
        if is_a(live, enum.Enum):
            return live if isinstance(live.value, _PLAIN) else UNKNOWN
        if is_a(live, types.ModuleType):
            return live if self._policy.may_import(live.__name__) else self._twin(live)
        if depth == 0:
            return UNKNOWN
        known = self._memo.get(id(live))
        if known is not None:
            return known[1]
        found = self._build(live, depth - 1)
        self._memo.setdefault(id(live), (live, found))
        return found

    def _build(self, live: Any, depth: int) -> Any:
        if is_a(live, torch.Tensor):
            return self._make(live)
        if is_a(live, (type, types.FunctionType, types.MethodType)):
            return self._callable(live, depth)
        if type(live) in (list, tuple, set, frozenset, dict, OrderedDict, defaultdict, deque):
            return self._container(live, depth)
        if type(live).__module__ == "numpy" and type(live).__name__ == "ndarray":
            small = live.dtype.hasobject is False and live.size <= 65_536
            return live.copy() if small else UNKNOWN
        if is_a(live, torch.nn.Module) and self._policy.allows(type(live)):
            return self._instance(live, type(live), depth)
        if is_a(live, torch.optim.Optimizer) and self._policy.allows(type(live)):
            return self._instance(live, type(live), depth)
        if type(live) is weakref.ref:
            # The stand-in of what it refers to is kept in the memory of all stand-ins.
            target = self.adopt(live(), depth)
            return UNKNOWN if target is UNKNOWN or target is None else weakref.ref(target)
        if type(live) is contextvars.ContextVar:
            return ContextVariable()
        if is_a(live, torch.Generator):
            return torch.Generator()
        if type(live).__module__.startswith("numpy.random"):
            return _numpys_generator(type(live).__name__)
        if _is_stateless(live) and self._policy.allows(live):
            return live
        if type(live) is partial:
            function, *given = (self.adopt(v, depth) for v in (live.func, *live.args))
            named = {n: self.adopt(v, depth) for n, v in live.keywords.items()}
            return UNKNOWN if function is UNKNOWN else partial(function, *given, **named)
        kind = self._twin(type(live))
        if isinstance(kind, type) and is_twin_class(kind):
            return self._instance(live, kind, depth)
        if self._is_open(type(live)):
            return self._instance(live, type(live), depth)
        return UNKNOWN

    def _is_open(self, kind: type) -> bool:
        """Whether all that an object of one of torch's or Python's classes holds is its table."""
        module = str(kind.__module__).partition(".")[0]
        made = class_attribute(kind, "__init__") is not class_attribute(object, "__init__")
        plain = made and kind.__basicsize__ <= _Table.__basicsize__
        return plain and module in ("torch", "functools", "types") and self._policy.allows(kind)

    def _callable(self, live: Any, depth: int) -> Any:
        if is_a(live, types.MethodType):
            return self._bound(live, depth)
        twin = self._twin(live)
        if twin is not UNKNOWN:
            return twin
        return live if self._policy.allows(live) else UNKNOWN

    def _bound(self, live: types.MethodType, depth: int) -> Any:
        """A method of an object, also where the object has something else under its name now."""
        owner = self.adopt(live.__self__, depth)
        function = self.adopt(live.__func__, depth)
        if owner is UNKNOWN:
            return UNKNOWN
        if callable(function) and function is not UNKNOWN:
            return types.MethodType(function, owner)
        return getattr(owner, live.__name__, UNKNOWN)

    def _container(self, live: Any, depth: int) -> Any:
        if len(live) > _LIMIT:
            return UNKNOWN
        if is_a(live, dict):
            found: Any = type(live)() if not is_a(live, defaultdict) else defaultdict(list)
            self._memo[id(live)] = (live, found)
            for key, value in list(items(live)):
                found[self.adopt(key, depth)] = self.adopt(value, depth)
            return found
        found = [self.adopt(value, depth) for value in list(live)]
        return found if is_a(live, list) else type(live)(found)

    def _instance(self, live: Any, kind: type, depth: int) -> Any:
        if is_a(live, tuple):  # a NamedTuple
            parts = [self.adopt(part, depth) for part in elements(live, _LIMIT)]
            return tuple.__new__(kind, parts) if issubclass(kind, tuple) else UNKNOWN
        try:
            found: Any = kind.__new__(kind)  # type: ignore[call-overload]
        except TypeError:
            return UNKNOWN
        self._memo[id(live)] = (live, found)
        if is_a(live, dict) and is_a(found, dict):
            for key, value in list(items(live))[:_LIMIT]:
                dict.__setitem__(found, self.adopt(key, depth), self.adopt(value, depth))
        state = _state(live)
        kept = not is_of_package(type(live))
        module = is_a(live, torch.nn.Module)
        for name, value in list(state.items()):
            if not kept and _has_graph(value):
                value = None  # a cache: the program had not filled it when it made the object
            whole = module and name in _PARTS
            adopted = self._attribute(name, value, _DEPTH if whole else depth)
            object.__setattr__(found, name, adopted)
        return found
