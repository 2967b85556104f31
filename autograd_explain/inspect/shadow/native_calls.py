"""Calls of Python's own that one does not make again: without an end, or reaching for too much."""

from __future__ import annotations

import types
from typing import Any

from .budget import has_wide_field, too_big
from .policy import may_change
from .unknown import words

_LARGE = 1_000_000
_COUNTING = words("factorial comb perm")
_SETTING = words("__setattr__ __delattr__")
_TEXT = (str, bytes, bytearray)


def is_excessive(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a native call would take too long, make too much or change what is not the walk's."""
    name = getattr(function, "__name__", "")
    owner = getattr(function, "__self__", None)
    bound = owner is not None and not isinstance(owner, types.ModuleType)
    values = (owner, *args) if bound else args
    if name in _SETTING:
        return bool(values) and not may_change(values[0])
    if name.strip("_").removeprefix("r") in ("pow", "lshift") and len(values) > 1:
        return too_big(name.strip("_").removeprefix("r"), *_ordered(name, values))
    if name in _COUNTING:
        return any(isinstance(a, int) and a > 5_000 for a in args)
    if isinstance(owner, _TEXT) or function in _TEXT:
        wide = isinstance(owner, (str, bytes)) and name in ("format", "__mod__", "format_map")
        large = any(isinstance(a, int) and a > _LARGE for a in (*args, *kwargs.values()))
        return large or (wide and isinstance(owner, (str, bytes)) and has_wide_field(owner))
    return _is_long_range(function, args)


def _ordered(name: str, values: tuple[Any, ...]) -> tuple[Any, Any]:
    reverse = name.startswith("__r")
    return (values[1], values[0]) if reverse else (values[0], values[1])


def _is_long_range(function: Any, args: tuple[Any, ...]) -> bool:
    """`deque(range(10**9))`: consumed at once, in one native loop."""
    lazy = (zip, map, filter, enumerate, reversed, iter, slice, range)
    if any(function is f for f in lazy):
        return False
    return any(isinstance(a, range) and len(a) > _LARGE for a in args)
