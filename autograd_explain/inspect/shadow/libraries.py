"""Installed packages that work on tensors, as twin code meets them.

Their own source is followed like the user's, one function or class at a time, when it is first
reached: nothing of a library is imported, executed or handed out that the policy does not allow.
"""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import torch

from ...isolation.type_checks import is_a
from ...program import is_installed
from .budget import RunBudget
from .decorators import without_traceless
from .instrument import LIBRARY_TWIN, Twins
from .policy import PURE, Policy, is_twin_class
from .site import Site
from .substitutes import Substitutes
from .unknown import UNKNOWN, Unknown


class Run(Protocol):
    """What of a run is needed here."""

    twins: Twins
    policy: Policy
    budget: RunBudget
    stack: list[Site]
    adopter: Substitutes
    builtins: dict[str, Any]
    replaced: Callable[[str], Any]


class LibraryModule(types.ModuleType):
    """What stands for a module of a library: names are looked up when twin code reads them."""

    _ag_find: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._ag_find(name)


class _Builtins(dict[str, Any]):
    """Builtins of a library's twin: a name that is nowhere else is looked for in its module."""

    def __init__(self, names: dict[str, Any], module: LibraryModule) -> None:
        super().__init__(names)
        self._module = module

    def __missing__(self, name: str) -> Any:
        return getattr(self._module, name, UNKNOWN)


class Libraries:
    """The modules of libraries that a run has come to."""

    def __init__(self, walk: Run) -> None:
        self._walk = walk
        self._modules: dict[str, LibraryModule | None] = {}
        self._strange: set[str] = set()
        self._files: dict[str, str] = {}
        self._building: set[tuple[str, str]] = set()
        self.follow = True
        #: packages of which a module was followed: their helpers are, too
        self._roots: set[str] = set()

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
        apart = root in PURE or not self.follow
        live: Any = None if apart else sys.modules.get(name)
        filename = getattr(live, "__file__", None)
        own = isinstance(filename, str) and filename.endswith(".py") and is_installed(filename)
        if not isinstance(filename, str) or not own:
            self._strange.add(name)
            return None
        if root not in self._roots and not _knows_torch(root):
            return None
        self._roots.add(root)
        walk = self._walk
        found = LibraryModule(name)
        self._files[name] = filename
        names = vars(found)
        names["__package__"] = getattr(live, "__package__", None)
        names["__builtins__"] = _Builtins(walk.builtins, found)
        names["_ag_find"] = lambda wanted: self._find(found, live, wanted)
        return found

    def _find(self, module: LibraryModule, live: Any, name: str) -> Any:
        """A name of a module; its own table is asked, as asking the module may import."""
        held = vars(live)
        if name not in held:
            found = self._walk.replaced(name)
            if found is None:
                raise AttributeError(name)
            return found
        found = self._value(held[name])
        return vars(module).setdefault(name, found)

    def _value(self, live: Any) -> Any:
        walk = self._walk
        if is_a(live, types.ModuleType):
            own = live if walk.policy.may_import(live.__name__) else self.module(live.__name__)
            return UNKNOWN if own is None else own
        wrapped = inspect.getattr_static(live, "__wrapped__", None)
        if is_a(wrapped, types.FunctionType) and not is_a(live, types.FunctionType):
            return self.twin(wrapped)  # functools.lru_cache
        return walk.adopter.adopt(live)

    def twin(self, live: Any) -> Any:
        """The twin of a library's function or class, by its own source; else UNKNOWN."""
        with suppress(Exception):  # a class or a wrapper of somebody's may answer anything
            name, path = str(live.__module__), str(live.__qualname__)
            module = None if "<locals>" in path else self.module(name)
            if module is not None:
                first, *rest = path.split(".")
                line = 0 if rest else _line_of(live)
                found = vars(module).get(first, UNKNOWN)
                if not _is_twin(found):
                    found = self._define(name, module, first, line)
                for part in rest:
                    found = getattr(found, part, UNKNOWN)
                return found if _is_twin(found) else UNKNOWN
        return UNKNOWN

    def _define(self, module: str, names: LibraryModule, name: str, line: int) -> Any:
        """Executes a definition of a module's twin."""
        walk, key = self._walk, (module, name)
        if key in self._building:
            return UNKNOWN
        with walk.budget.uncounted():
            prepare = partial(without_traceless, names=vars(sys.modules[module]))
            code = walk.twins.library(self._files[module], prepare).code(name, line)
        if code is None:
            return UNKNOWN
        self._building.add(key)
        outer = walk.stack[:]
        try:
            exec(code, vars(names))
        except Exception:
            return UNKNOWN
        finally:
            walk.stack[:] = outer
            self._building.discard(key)
        return vars(names).get(name, UNKNOWN)

    def is_inside(self, function: Any) -> bool:
        """Whether calling this enters a library's own source."""
        if isinstance(function, torch.nn.Module):
            function = type(function)
        if isinstance(function, type):
            own = next((k for k in function.__mro__ if "_ag_twin" in vars(k)), None)
            return own is not None and self._modules.get(own.__module__) is not None
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        return code is not None and str(code.co_filename).startswith(LIBRARY_TWIN)


def works_on_tensors(values: Iterable[Any], depth: int = 2) -> bool:
    """Whether a call with these concerns autograd: tensors or modules, or what holds such."""
    for value in values:
        if isinstance(value, (torch.Tensor, torch.nn.Module, torch.optim.Optimizer)):
            return True
        if depth and works_on_tensors(_parts(value), depth - 1):
            return True
    return False


def _parts(value: Any) -> Iterator[Any]:
    if type(value) is Unknown or isinstance(value, type):
        return
    if isinstance(value, (list, tuple)):
        yield from value[:8]
    elif isinstance(value, dict):
        yield from list(value.values())[:8]
    elif is_twin_class(type(value)):
        yield from list(getattr(value, "__dict__", {}).values())


def _knows_torch(package: str) -> bool:
    """Whether torch, a module of it or one of its functions or classes is among the names of a
    loaded module of a package: its own file may only import them."""
    inside = f"{package}."
    loaded = (m for n, m in list(sys.modules.items()) if n == package or n.startswith(inside))
    return any(
        _is_torch(value)
        for module in loaded
        if is_a(module, types.ModuleType)
        for value in list(vars(module).values())
    )


def _is_torch(value: Any) -> bool:
    if is_a(value, types.ModuleType):
        return str(value.__name__).partition(".")[0] == "torch"
    named = is_a(value, (types.FunctionType, type))
    return named and str(value.__module__).partition(".")[0] == "torch"


def _line_of(live: Any) -> int:
    code = getattr(inspect.unwrap(live), "__code__", None)
    return 0 if code is None else int(code.co_firstlineno)


def _is_twin(value: Any) -> bool:
    if isinstance(value, type):
        return is_twin_class(value)
    inner = inspect.unwrap(value) if callable(value) else value
    code = getattr(inner, "__code__", None)
    return code is not None and str(code.co_filename).startswith(LIBRARY_TWIN)
