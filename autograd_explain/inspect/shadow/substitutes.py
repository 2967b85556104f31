"""Stand-ins for live objects, where the source does not tell how they were made.

A stand-in of a tensor has its shape, dtype and role (leaf, parameter) and storage of its own;
containers, modules and instances are rebuilt around stand-ins.  Nothing live is handed out that
could be changed.
"""

from __future__ import annotations

import enum
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ...isolation.type_checks import elements, is_a, items
from ...program import is_installed
from .policy import Policy, is_twin_class
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


def _is_of_package(kind: type) -> bool:
    """Whether an installed package other than torch defines a class."""
    module = str(kind.__module__)
    path = vars(sys.modules.get(module, sys)).get("__file__")
    own = module.partition(".")[0] == "torch" or not isinstance(path, str)
    return not own and is_installed(str(path))


def _has_graph(value: Any, depth: int = 2) -> bool:
    """Whether it is, or holds, a tensor that was computed from what requires grad."""
    if is_a(value, torch.Tensor):
        return value.requires_grad and not value.is_leaf
    if depth and type(value) in (list, tuple, dict):
        parts = list(value.values()) if type(value) is dict else value
        return any(_has_graph(part, depth - 1) for part in parts[:8])
    return False


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
        if is_a(live, torch.Generator):
            return torch.Generator()
        if _is_stateless(live) and self._policy.allows(live):
            return live
        kind = self._twin(type(live))
        if isinstance(kind, type) and is_twin_class(kind):
            return self._instance(live, kind, depth)
        return UNKNOWN

    def _callable(self, live: Any, depth: int) -> Any:
        if is_a(live, types.MethodType):
            owner = self.adopt(live.__self__, depth)
            return getattr(owner, live.__name__, UNKNOWN)
        twin = self._twin(live)
        if twin is not UNKNOWN:
            return twin
        return live if self._policy.allows(live) else UNKNOWN

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
        state: Mapping[str, Any] = vars(live)
        kept = not _is_of_package(type(live))
        module = is_a(live, torch.nn.Module)
        for name, value in list(state.items()):
            if not kept and _has_graph(value):
                value = None  # a cache: the program had not filled it when it made the object
            whole = module and name in _PARTS
            # Hooks are the user's functions and refer to the live module.
            adopted = type(value)() if "hooks" in name and isinstance(value, dict) else (
                self.adopt(value, _DEPTH if whole else depth)
            )  # fmt: skip
            object.__setattr__(found, name, adopted)
        return found
