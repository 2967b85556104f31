"""Installed packages that work on tensors, as twin code meets them.

Their own source is followed like the user's, one function or class at a time, when it is first
reached: nothing of a library is imported, executed or handed out that the policy does not allow.
"""

from __future__ import annotations

import enum
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Protocol

import torch

from ...isolation.type_checks import class_table, is_a, table_of
from ...program import is_installed
from .budget import RunBudget
from .definitions import Definitions
from .instrument import LIBRARY_TWIN, Twins
from .policy import PURE, Policy, behind, is_twin_class
from .replacements import Answer, ModuleNames
from .site import Site
from .substitutes import Substitutes
from .unknown import UNKNOWN, Unknown

_READING = 10  #: steps that a function counts for which is read for the first time
_CACHED = type(lru_cache(len))


class Run(Protocol):
    """What of a run is needed here."""

    twins: Twins
    policy: Policy
    budget: RunBudget
    stack: list[Site]
    adopter: Substitutes
    builtins: dict[str, Any]
    replaced: Callable[[str], Any]
    outer: dict[str, types.ModuleType]


class LibraryModule(types.ModuleType):
    """What stands for a module of a library: names are looked up when twin code reads them."""

    _ag_find: Any
    _ag_names: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self._ag_find(name)


class _Builtins(dict[str, Any]):
    """Builtins of a library's twin: a name that is nowhere else is looked for in its module."""

    def __init__(self, names: dict[str, Any], module: LibraryModule) -> None:
        super().__init__(names)
        self._module = module

    def __missing__(self, name: str) -> Any:
        if name == "globals":
            return ModuleNames(self._module)
        return getattr(self._module, name, UNKNOWN)


class Libraries:
    """The modules of libraries that a run has come to."""

    def __init__(self, walk: Run) -> None:
        self._walk = walk
        self._modules: dict[str, LibraryModule | None] = {}
        self._strange: set[str] = set()
        self._made = Definitions(self._code, self._names, self._value)
        self.follow = True
        #: packages of which a module was followed: their helpers are, too
        self._roots: set[str] = set()
        self._helpers: set[str] = set()

    @property
    def entered(self) -> bool:
        """Whether some package was followed."""
        return bool(self._roots)

    def module(self, name: str) -> LibraryModule | None:
        """What stands for a loaded module; None for one that is not followed."""
        found = self._modules.get(name)
        if found is None and name not in self._strange:
            found = self._modules[name] = self._followed(name)
        return found

    def _followed(self, name: str) -> LibraryModule | None:
        root = name.partition(".")[0]
        live: Any = None if root in PURE or not self.follow else sys.modules.get(name)
        filename = table_of(live).get("__file__")
        own = isinstance(filename, str) and filename.endswith(".py")
        # Of a package that is followed, what it generated is too.
        if not own or not (root in self._roots or is_installed(str(filename))):
            self._strange.add(name)
            return None
        if root not in self._roots | self._helpers and not self._knows_torch(root):
            return None
        self._roots.add(root)
        return self._standing_for(name, vars(live))

    def _knows_torch(self, package: str) -> bool:
        """Whether torch, a module of it or one of its functions or classes is among the names of a
        loaded module of a package (its own file may only import them); what else such a package
        has from others is followed, too."""
        inside = f"{package}."
        loaded = [m for n, m in list(sys.modules.items()) if n == package or n.startswith(inside)]
        names = {_root_of(v) for m in loaded for v in list(vars(m).values())}
        if "torch" in names:
            self._helpers |= names
        return "torch" in names

    def _standing_for(self, name: str, live: dict[str, Any]) -> LibraryModule:
        """A module whose names are those of a live table, each followed when it is asked for."""
        found = LibraryModule(name)
        names = vars(found)
        names["__package__"] = live.get("__package__")
        names["__builtins__"] = _Builtins(self._walk.builtins, found)
        names["_ag_find"] = lambda wanted: self._find(found, live, wanted)
        # What `vars(module)` goes through: a registry of layers by their names.
        names["_ag_names"] = lambda: [n for n in islice(live, _MOST) if not n.startswith("_")]
        return found

    def _find(self, module: LibraryModule, live: dict[str, Any], name: str) -> Any:
        """A name of a module; its own table is asked, as asking the module may import."""
        if name not in live:
            found = self._walk.replaced(name)
            if found is None:
                raise AttributeError(name)
            return found
        found = self._value(live[name])
        return vars(module).setdefault(name, found)

    def _value(self, live: Any) -> Any:
        walk = self._walk
        if is_a(live, types.ModuleType):
            outer = walk.outer.get(live.__name__)
            if outer is not None:
                return outer
            own = live if walk.policy.may_import(live.__name__) else self.module(live.__name__)
            return UNKNOWN if own is None else own
        if is_a(live, _CACHED):
            if _has_answered(live):
                return Answer(walk.adopter.adopt(live()))
            return walk.adopter.adopt(live.__wrapped__)
        if type(live).__module__ == "typing" and isinstance(typing.get_origin(live), type):
            return walk.adopter.adopt(typing.get_origin(live))  # `typing.OrderedDict()` makes one
        return walk.adopter.adopt(live)

    def twin(self, live: Any) -> Any:
        """The twin of a library's function or class; else UNKNOWN."""
        if not self.follow:
            return UNKNOWN
        with suppress(Exception):  # a class or a wrapper of somebody's may answer anything
            if is_a(live, types.FunctionType):
                pure = str(live.__globals__.get("__name__")).partition(".")[0] in PURE
                return self._made.rebound(live) if pure else self._made.function(live)
            if is_a(live, type) and self._is_followed(live):
                return live if _only_tells(live) else self._made.kind(live)
        return UNKNOWN

    def _is_followed(self, live: type) -> bool:
        """Whether a class is of such a module, or was made of such classes while the program ran
        and adds nothing (PyG's `DataBatch`, of a batch and of what it is a batch of)."""
        if self.module(str(live.__module__)) is not None:
            return True
        adds = any(is_a(v, types.FunctionType) for v in class_table(live).values())
        given = [self.module(str(base.__module__)) for base in live.__bases__]
        return not adds and len(given) > 1 and all(module is not None for module in given)

    def _code(self, live: types.FunctionType) -> types.CodeType | None:
        """The twin of a function's code, read from its file."""
        walk = self._walk
        walk.budget.charge(_READING)
        with walk.budget.uncounted():
            return walk.twins.library(live.__code__.co_filename).function(live)

    def _names(self, live: dict[str, Any]) -> dict[str, Any] | None:
        """What stands for the module in which a function was defined, None for others' modules."""
        name = str(live.get("__name__"))
        found = self.module(name)
        if found is not None and vars(sys.modules[name]) is not live:
            key = f"{name} {id(live)}"  # generated, or loaded again since
            found = self._modules.get(key)
            if found is None:
                found = self._modules[key] = self._standing_for(name, live)
        return None if found is None else vars(found)

    def is_inside(self, function: Any) -> bool:
        """Whether calling this enters a library's own source."""
        if isinstance(function, torch.nn.Module):
            function = type(function)
        if isinstance(function, type):
            own = next((k for k in function.__mro__ if "_ag_twin" in vars(k)), None)
            return own is not None and self._modules.get(own.__module__) is not None
        function = behind(function)
        return isinstance(
            function, types.FunctionType
        ) and function.__code__.co_filename.startswith(LIBRARY_TWIN)


def works_on_tensors(values: Iterable[Any]) -> bool:
    """Whether a call with these concerns autograd: tensors or modules, or what holds such."""
    return any(isinstance(v, (torch.Tensor, *_TRAINED)) for v in _within(values))


def may_have_graph(values: Iterable[Any]) -> bool:
    """Whether a call with these may record something: a tensor that requires grad, a module."""
    return any(
        v.requires_grad if isinstance(v, torch.Tensor) else isinstance(v, _TRAINED)
        for v in _within(values)
    )


_TRAINED = (torch.nn.Module, torch.optim.Optimizer)


def _within(values: Iterable[Any]) -> Iterator[Any]:
    """The values and what they hold, as far as that is looked into."""
    row = list(values)
    for _ in range(_HELD):
        yield from row
        row = list(islice(chain.from_iterable(map(_parts, row)), _MOST))


_HELD, _MOST = 5, 300


def _parts(value: Any) -> Iterator[Any]:
    if type(value) is Unknown or isinstance(value, type):
        return
    if isinstance(value, (list, tuple)):
        yield from value[:8]
    elif isinstance(value, dict):
        yield from list(value.values())[:8]
    elif is_twin_class(type(value)):
        yield from list(getattr(value, "__dict__", {}).values())


def _only_tells(live: Any) -> bool:
    """Whether a class is asked and never run: one of constants, or what others are to look like."""
    return is_a(live, enum.EnumMeta) or class_table(live).get("_is_protocol") is True


def _has_answered(live: Any) -> bool:
    """Whether a function that remembers its results takes no arguments and has been called: calling
    it runs nothing."""
    inner = live.__wrapped__
    code = inner.__code__ if is_a(inner, types.FunctionType) else None
    taken = 1 if code is None else code.co_argcount + code.co_kwonlyargcount + code.co_flags & 12
    return taken == 0 and live.cache_info().currsize == 1


def _root_of(value: Any) -> str:
    """The package that a module, a function or a class belongs to."""
    if is_a(value, types.ModuleType):
        return str(value.__name__).partition(".")[0]
    if is_a(value, (types.FunctionType, type)):
        return str(value.__module__).partition(".")[0]
    return ""
