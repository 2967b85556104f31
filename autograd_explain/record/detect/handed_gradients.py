"""Writes to a gradient by code that runs inside a backward, and Functions that run there.

Autograd may hand one gradient to several tensors, so that a hook which writes its argument changes
the gradients of others.  Whether it did is found by running the cell again; here is noted where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor

from ...isolation.frame_names import names_in
from ...isolation.type_checks import class_attribute, with_subclasses
from ...live_definitions import code_of
from ..observe.tensor_facts import storage, tensors_in
from .finding import CandidateFault, Mark

_MAX_SITES = 4
_ENGINE = "_engine_run_backward"


class HandedGradients:
    """Where gradients were written in this cell."""

    def __init__(self) -> None:
        self.written: dict[int, Mark] = {}
        self.backward: Mark | None = None  #: the one that is running

    def wrote(self, tensor: Tensor, frame: FrameType, mark: Mark) -> None:
        """An operation has written a tensor while a backward runs."""
        if len(self.written) < _MAX_SITES and mark.site not in self.written:
            kept = storage(tensor)
            if any(storage(given) == kept for given in _handed(frame)):
                self.written[mark.site] = mark

    def suspect(self, backward: Mark) -> CandidateFault | None:
        if not self.written:
            return None
        marks = {"changed": tuple(self.written.values()), "backward": (backward,)}
        return CandidateFault("gradient-overwritten", marks)


def _handed(frame: FrameType | None) -> Iterator[Tensor]:
    """The tensors that the functions between here and the engine were called with."""
    found: list[Any] = []
    while frame is not None and frame.f_code.co_name != _ENGINE:
        found += _arguments(frame)
        frame = frame.f_back
    if frame is not None:
        yield from tensors_in(found)


def _arguments(frame: FrameType) -> list[Any]:
    code = frame.f_code
    varargs = bool(code.co_flags & 0x04)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + varargs]
    held = names_in(frame)
    return [held[name] for name in names if name in held]


def has_own_function(is_user_code: Callable[[str], bool]) -> bool:
    """Whether the program has a custom Function of its own."""
    return any(is_user_code(code.co_filename) for code in _backwards())


def _backwards() -> Iterator[CodeType]:
    derived: Any
    for derived in with_subclasses(torch.autograd.Function) - {torch.autograd.Function}:
        code = code_of(class_attribute(derived, "backward"))
        if code is not None:
            yield code
