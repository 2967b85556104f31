"""While we work, what the session has put in the place of Python's and torch's own does not run.

A function that a program binds to the name of a builtin or of a method of torch's counts, prints
or draws with every call: with ours too, unless the original stands there meanwhile.  The same
goes for trace and profile functions.
"""

from __future__ import annotations

import builtins
import gc
import os
import random
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from itertools import compress
from operator import is_not
from types import FunctionType
from typing import Any

from ..program import is_library

# Taken now: what these names are bound to later may be the session's.
_vars, _type, _setattr, _delattr, _len = vars, type, setattr, delattr, len
_callable, _next, _range, _map = callable, next, range, map
_reversed: Any = reversed  # of a dict that typing knows as a mapping only
_gettrace, _settrace, _getprofile = sys.gettrace, sys.settrace, sys.getprofile
_setprofile, _threads = sys.setprofile, threading.active_count
_OWNERS = (builtins, time, os, random, gc)
_ABSENT = object()


class Originals:
    """What an owner's names were bound to: as a table, and its two columns."""

    def __init__(self, table: dict[str, Any]) -> None:
        self.table = table
        self.names, self.values = (*table,), (*table.values(),)


class Apart:
    """A context to work in; enter it as often as wanted, one in another too.

    The originals are those of the time when it was made, torch's of when torch was first seen.
    While other threads of the session run, only their own thread's tracing is put aside: they
    must not lose what they have bound.
    """

    def __init__(self) -> None:
        self._kept: list[tuple[Any, Originals]] = []
        self._torch = False
        self._depth = 0
        self._threads = _threads()
        self._replaced: list[tuple[Any, str, Any]] = []
        self._traced: tuple[Any, Any] = (None, None)
        for owner in _OWNERS:
            self._keep(owner)

    def remember_torch(self) -> None:
        """Keep torch's own functions, before the session can change them."""
        torch = sys.modules.get("torch")
        if self._torch or torch is None or not hasattr(torch, "autograd"):
            return
        self._torch = True
        nn = torch.nn
        for owner in (torch, torch.Tensor, torch.autograd, nn.Module, nn.functional, nn.init):
            self._keep(owner)

    @property
    def patched(self) -> bool:
        """Whether functions of torch's stand aside for the session's, but for now."""
        own = {id(owner) for owner, _ in self._kept[_len(_OWNERS) :]}
        return any(id(owner) in own for owner, _, _ in self._replaced)

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth > 1:
            return
        self._traced = _python(_gettrace()), _python(_getprofile())
        trace, profile = self._traced
        if trace is not None:
            _settrace(None)
        if profile is not None:
            _setprofile(None)
        if _threads() <= self._threads:
            self._put_originals()

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if self._depth:
            return
        while self._replaced:
            owner, name, theirs = self._replaced.pop()
            _setattr(owner, name, theirs)
        trace, profile = self._traced
        if profile is not None:
            _setprofile(profile)
        if trace is not None:
            _settrace(trace)

    def _keep(self, owner: Any) -> None:
        self._kept.append((owner, Originals({**_vars(owner)})))

    def _put_originals(self) -> None:
        for owner, kept in self._kept:
            for name, theirs in _changed(_vars(owner), kept):
                self._replaced.append((owner, name, theirs))
                original = kept.table.get(name, _ABSENT)
                if original is _ABSENT:
                    _delattr(owner, name)
                else:
                    _setattr(owner, name, original)


def _python(tracer: Any) -> Any:
    """A function that Python calls.  What is none (cProfile's Profile) works in C and can't be put
    back: it goes on."""
    return tracer if _callable(tracer) else None


def _changed(now: Mapping[str, Any], kept: Originals) -> Iterator[tuple[str, Any]]:
    """Names that the session has bound to code of its own."""
    for name, value in _others(now, kept):
        if kept.table.get(name, _ABSENT) is not value and _is_sessions(value):
            yield name, value


def _others(now: Mapping[str, Any], kept: Originals) -> list[tuple[str, Any]]:
    """What may have been bound anew, which is next to nothing.

    Where no name came (it would be the last) and none went, the values are compared by position,
    without touching the names or running Python for each: a forked copy of the session shares the
    pages of what nobody counts a reference to.
    """
    names = kept.names
    if _len(now) != _len(names) or _next(_reversed(now), None) != names[-1]:
        return [*now.items()]
    different = compress(_range(_len(names)), _map(is_not, now.values(), kept.values))
    return [(names[at], now.get(names[at], _ABSENT)) for at in [*different]]


def _is_sessions(value: Any) -> bool:
    kind = _type(value)
    if kind is property:
        return any(_is_sessions(part) for part in (value.fget, value.fset) if part is not None)
    if kind in (staticmethod, classmethod):
        return _is_sessions(value.__func__)
    return kind is FunctionType and not is_library(value.__code__.co_filename)
