"""Libraries that the program loads: once for all replays, where each would load them anew."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module

from ..isolation.type_checks import table_of
from ..program import is_library
from .plan import Loaded
from .process import uses_device
from .sandbox import ForbiddenEffect

_PACKAGE = __name__.partition(".")[0]


def modules_now() -> tuple[str, ...]:
    """The names of the modules that are loaded, in order."""
    return tuple(sys.modules)


def loaded_since(before: Sequence[str]) -> Loaded:
    """The libraries' modules that were loaded since `modules_now` gave those `before`."""
    modules = tuple(name for name in _new(before) if _is_of_library(name))
    return Loaded(modules, tuple(sys.path), dict(os.environ), uses_device())


def _new(before: Sequence[str]) -> list[str]:
    """What was loaded comes last, so where the last is the same, nothing was."""
    if before and len(sys.modules) == len(before) and next(reversed(sys.modules)) == before[-1]:
        return []
    known = frozenset(before)
    return [n for n in list(sys.modules) if n not in known and n.partition(".")[0] != _PACKAGE]


def load(loaded: Loaded) -> None:
    """Load what is not there yet; nothing else of this process is another afterwards."""
    missing = [name for name in loaded.modules if name not in sys.modules]
    if not missing:
        return
    with _surroundings(loaded), _random_numbers():
        for name in missing:
            with suppress(Exception, ForbiddenEffect):  # a replay that needs it shows why
                import_module(name)


def _is_of_library(name: str) -> bool:
    file = table_of(sys.modules.get(name)).get("__file__")
    return isinstance(file, str) and is_library(file)


@contextmanager
def _surroundings(loaded: Loaded) -> Iterator[None]:
    path, environment = sys.path[:], dict(os.environ)
    sys.path[:] = loaded.path
    os.environ.update(loaded.environment)
    try:
        yield
    finally:
        sys.path[:] = path
        for name in set(os.environ) - set(environment):
            del os.environ[name]
        os.environ.update(environment)


@contextmanager
def _random_numbers() -> Iterator[None]:
    import torch

    numpy = sys.modules.get("numpy")
    states = torch.get_rng_state(), random.getstate()
    drawn = None if numpy is None else numpy.random.get_state()
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        if numpy is not None:
            numpy.random.set_state(drawn)
