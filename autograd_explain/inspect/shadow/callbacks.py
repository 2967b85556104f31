"""The user's functions that a library calls: entered where the traceback shows the call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from ...incident import LiveFrame
from .instrument import TWIN
from .policy import is_twin_class, is_twin_function
from .site import Site

#: As often as a library may have to call what takes nothing before it fails.
_CALLS = 3


def entered_from(frames: tuple[LiveFrame, ...], site: Site) -> LiveFrame | None:
    """The next of the user's frames inward from the one that stood at this site."""
    for outer, inner in pairwise(frames):
        if outer.filename == site.source.filename and site.covers(outer.line):
            return inner
    return None


def is_call(live: LiveFrame) -> bool:
    """Whether a frame is a function's, not that of a cell or a module."""
    return bool(live.code.co_flags & inspect.CO_NEWLOCALS)


def twin_behind(live: LiveFrame, given: Iterable[Any], names: Mapping[str, Any]) -> Any:
    """The twin of the function in which a library entered the program, or None: among what the
    library was given (`step` of `timeit.timeit(step)`), a method of that, or of the module whose
    `names` these are."""
    for value in given:
        for found in (value, getattr(value, live.code.co_name, None)):
            if _is_twin_of(found, live):
                return found
    return next((f for f in _functions(names.values()) if _is_twin_of(f, live)), None)


def _functions(values: Iterable[Any]) -> Iterator[Any]:
    """Functions among these, and those of the classes among these."""
    for value in list(values):
        if isinstance(value, type) and is_twin_class(value):
            yield from _functions(vars(value).values())
        else:
            yield getattr(value, "__wrapped__", getattr(value, "__func__", value))


def _is_twin_of(value: Any, live: LiveFrame) -> bool:
    function = getattr(value, "__func__", value)
    if not is_twin_function(function):
        return False
    code, lived = function.__code__, live.code
    same = code.co_name == lived.co_name and code.co_firstlineno == lived.co_firstlineno
    return same and bool(code.co_filename == f"{TWIN}{live.filename}>")


def calls_of(
    function: Any, live: LiveFrame, adopt: Callable[[Any], Any]
) -> Iterator[tuple[Any, ...]]:
    """The arguments of the calls to make: what the failing call had, and for a function that takes
    nothing several calls, as the failing one may not have been the first."""
    names = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    held = live.frame.f_locals
    for _ in range(1 if names else _CALLS):
        yield tuple(adopt(held.get(name)) for name in names)
