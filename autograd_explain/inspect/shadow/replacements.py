"""What the walk calls instead of things it may not run."""

from __future__ import annotations

import itertools
import operator
import os
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, ClassVar

import torch

from ...isolation.type_checks import is_a
from .policy import may_change, may_read, private_copy
from .unknown import UNKNOWN, Unknown


def specials() -> dict[Any, Callable[..., Any]]:
    """Functions that are replaced: identity -> what the walk does."""
    found: dict[Any, Callable[..., Any]] = {
        torch.manual_seed: manual_seed,
        torch.compile: _identity,
        torch.jit.script: _identity,
        torch.jit.trace: _identity,
        torch.nn.DataParallel: Wrapped,
        torch.nn.parallel.DistributedDataParallel: Wrapped,
        torch.utils.data.DataLoader: Loader,
        torch.utils.data.random_split: _random_split,
        torch.amp.GradScaler: Scaler,
        torch.cuda.is_available: torch.cuda.is_available,
        torch.inference_mode: InferenceMode,
        isinstance: _isinstance,
        issubclass: _issubclass,
        iter: _iter,
        operator.attrgetter: _attrgetter,
        weakref.proxy: _identity,
        itertools.count: lambda *a, **k: bounded(itertools.count(*a, **k)),
        itertools.cycle: lambda values: bounded(itertools.cycle(bounded(values))),
        itertools.repeat: lambda *a, **k: bounded(itertools.repeat(*a, **k)),
    }
    scaler = getattr(torch.cuda.amp, "GradScaler", None)
    if scaler is not None:
        found[scaler] = Scaler
    for convert in (int, float, round, len, range, abs, str, complex, bool, sum, max, min, sorted):
        found[convert] = _guarded(convert)
    for collect in (list, tuple, set, frozenset, dict, any, all):
        found[collect] = _guarded(collect)
    return found


def _iter(values: Any, *sentinel: Any) -> Any:
    """An iterator; one that calls until a value comes may never end."""
    return bounded(iter(values, *sentinel)) if sentinel else iter(values)


def _attrgetter(*names: Any) -> Any:
    hidden = any("__" in str(n) for n in names)
    return UNKNOWN if hidden else operator.attrgetter(*names)


def _identity(value: Any = None, *args: Any, **kwargs: Any) -> Any:
    return value if value is not None else _identity


def manual_seed(seed: Any = 0) -> Any:
    # Only the generator that the walk restores; torch.manual_seed would reach the devices'.
    return torch.default_generator.manual_seed(int(seed) if type(seed) is not Unknown else 0)


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A builtin that neither meets an unknown nor runs through an endless iterable."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if any(type(a) is Unknown for a in args):
            return UNKNOWN
        if len(args) == 1 and hasattr(args[0], "__next__"):
            return function(bounded(args[0]), **kwargs)
        if len(args) == 1 and isinstance(args[0], range) and len(args[0]) > 5000:
            args = (args[0][:5000],)
        return function(*args, **kwargs)

    call.__name__ = function.__name__
    return call


def _isinstance(value: Any, kinds: Any) -> bool:
    if type(value) is Unknown:
        return False
    if isinstance(kinds, tuple):
        return any(_isinstance(value, k) for k in kinds)
    if not isinstance(kinds, type) and type(kinds) is Unknown:
        return False
    return isinstance(value, kinds)


def _issubclass(value: Any, kinds: Any) -> bool:
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    return isinstance(value, type) and any(
        isinstance(k, type) and issubclass(value, k) for k in kinds
    )


@contextmanager
def _asking(tries: list[Callable[[], Any]]) -> Iterator[None]:
    """Whether there is such an attribute is the question: code that says no by an error does."""
    tries.append(_no_attribute)
    try:
        yield
    finally:
        if _no_attribute in tries:
            tries.remove(_no_attribute)


def _no_attribute() -> type[Exception]:
    return AttributeError


def builtin_functions(tries: list[Callable[[], Any]]) -> dict[str, Callable[..., Any]]:
    """Builtins that reach for attributes by name, within what the walk may touch; `tries` says
    which errors are caught."""

    def get(owner: Any, name: Any, *default: Any) -> Any:
        if type(owner) is Unknown or type(name) is Unknown or not may_read(owner, str(name)):
            return UNKNOWN
        with _asking(tries) if default else nullcontext():
            return private_copy(owner, getattr(owner, name, *default))

    def put(owner: Any, name: Any, value: Any) -> None:
        if type(owner) is not Unknown and type(name) is not Unknown and may_change(owner):
            setattr(owner, name, value)

    def remove(owner: Any, name: Any) -> None:
        if type(owner) is not Unknown and may_change(owner):
            delattr(owner, name)

    def has(owner: Any, name: Any) -> bool:
        with _asking(tries):
            return type(owner) is not Unknown and hasattr(owner, name)

    def variables(owner: Any = UNKNOWN) -> Any:
        if type(owner) is Unknown:
            return UNKNOWN
        own = vars(owner)
        if is_a(owner, types.ModuleType) and "_ag_names" in own:
            return {name: getattr(owner, name) for name in own["_ag_names"]()}
        return dict(own)

    return {"getattr": get, "setattr": put, "delattr": remove, "hasattr": has, "vars": variables}


def outer_modules() -> dict[str, types.ModuleType]:
    """What may be read of the modules that lead outside: a copy of the environment, the names of
    paths, what is known of this Python."""
    environment, python = types.ModuleType("os"), types.ModuleType("sys")
    vars(environment).update(
        {n: getattr(os, n) for n in ("path", "sep", "name", "linesep", "PathLike", "fspath")}
    )
    variables = dict(os.environ)
    vars(environment).update(environ=variables, getenv=variables.get)
    known = ("version_info", "version", "platform", "byteorder", "maxsize", "executable")
    vars(python).update({n: getattr(sys, n) for n in known})
    vars(python).update(argv=[], modules={})
    return {"os": environment, "sys": python}


def bounded(values: Any, limit: int = 2000) -> Iterator[Any]:
    """The items of an iterable that may be endless."""
    for number, value in enumerate(values):
        if number >= limit:
            return
        yield value


class Answer:
    """A function that gives what it has given before."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __call__(self) -> Any:
        return self._value


class ContextVariable:
    """A `contextvars.ContextVar` of the walk's own, where nothing is set: a library collects the
    outputs of its layers in one while it runs."""

    def __init__(self) -> None:
        self._values: list[Any] = [None]

    def get(self, *default: Any) -> Any:
        return self._values[-1]

    def set(self, value: Any) -> int:
        self._values.append(value)
        return len(self._values) - 1

    def reset(self, token: Any) -> None:
        if isinstance(token, int):
            del self._values[max(token, 1) :]


class ModuleNames:
    """What `globals()` gives to a library: the names of its module, followed when asked for."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __call__(self) -> ModuleNames:
        return self

    def __contains__(self, name: str) -> bool:
        return hasattr(self._module, name)

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self._module, name)
        except AttributeError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, value: Any) -> None:
        vars(self._module)[name] = value

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self._module, name, default)


class Wrapped(torch.nn.Module):
    """DataParallel and DistributedDataParallel: the module on this device."""

    def __init__(self, module: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)


class InferenceMode(torch.inference_mode):
    """One that the program leaves open is ended with the walk: its C++ guard would otherwise put
    back the walk's autocast and gradient modes whenever the object is deleted."""

    _open: ClassVar[list[InferenceMode]] = []

    def __enter__(self) -> None:
        super().__enter__()
        self._open.append(self)

    def __exit__(self, *error: Any) -> None:
        if self in self._open:
            self._open.remove(self)
            super().__exit__(*error)

    @classmethod
    def end_all(cls) -> None:
        for mode in reversed(list(cls._open)):
            mode.__exit__(None, None, None)


class Scaler:
    """GradScaler: scales by one, steps the optimizer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def scale(self, loss: Any) -> Any:
        return loss * 1.0

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        return optimizer.step(*args, **kwargs)

    def unscale_(self, optimizer: Any) -> None: ...

    def update(self, *args: Any) -> None: ...


class Loader:
    """DataLoader without workers, shuffling or use of the generators."""

    def __init__(self, dataset: Any, batch_size: Any = 1, *args: Any, **kwargs: Any) -> None:
        self.dataset = dataset
        self.batch_size = batch_size if isinstance(batch_size, int) else 1
        self.collate = kwargs.get("collate_fn")
        self.drop_last = bool(kwargs.get("drop_last", False))

    def __len__(self) -> int:
        count = len(self.dataset)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        from torch.utils.data import default_collate

        collate = self.collate or default_collate
        count = len(self.dataset)
        for start in range(0, count, self.batch_size):
            stop = min(start + self.batch_size, count)
            if stop - start < self.batch_size and self.drop_last:
                return
            yield collate([self.dataset[i] for i in range(start, stop)])


def _random_split(dataset: Any, lengths: Any, *args: Any, **kwargs: Any) -> Any:
    found, start = [], 0
    total = len(dataset)
    for length in lengths:
        count = int(length * total) if isinstance(length, float) else length
        found.append(torch.utils.data.Subset(dataset, range(start, start + count)))
        start += count
    return found
