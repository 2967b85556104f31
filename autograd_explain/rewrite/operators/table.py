"""Every operator there is: the public functions of the modules beside this one."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from . import backwards, copies, ends, leaves, modes, order, parameters, writes
from .site import Operator

_MODULES = (copies, writes, modes, order, ends, leaves, backwards, parameters)


def _defined_in(module: Any) -> list[Any]:
    known = (f for f in vars(module).values() if isinstance(f, FunctionType))
    own = (f for f in known if f.__module__ == module.__name__)
    return [f for f in own if not f.__name__.startswith("_")]


#: Of two that are as likely, the first is tried first.
OPERATORS: tuple[Operator, ...] = tuple(
    operator for module in _MODULES for operator in _defined_in(module)
)
