"""Hooks that are registered again and again, on what an optimizer steps or on a module."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import CodeType
from typing import Any

from torch import Tensor, nn

from ...hooks import OF_MODULE, OF_TENSOR, hooks_in
from ...live_definitions import code_of
from .finding import CandidateFault, Mark, Marks, Weak

_ROUNDS = 3  #: numbers of them, each found by a step, and each larger than the one before
_MAX_MODULES = 1_000
#: What is known of hooks that were taken away again.
_SETTLED = (0,) * _ROUNDS


@dataclass(frozen=True)
class Piled:
    """Hooks of one code object, so many of them, on a parameter or a module."""

    owner: Callable[[], Tensor | nn.Module | None]
    code: CodeType
    times: int


class PiledHooks:
    """Follows the number of hooks of one code object on each parameter and module, from step to
    step; one that stays the same in between (a hook for each epoch) is one number."""

    def __init__(self) -> None:
        self._found: list[Piled] = []
        self._marks: Marks = {}
        self._counts: dict[tuple[int, CodeType], tuple[Callable[[], Any], tuple[int, ...]]] = {}
        self._modules: dict[int, weakref.ref[nn.Module]] = {}

    def begin(self) -> None:
        """A cell begins."""
        self._found.clear()

    def suspect(self) -> CandidateFault | None:
        """All of the cell, as only another run of it tells whether they make a difference."""
        if not self._found:
            return None
        return CandidateFault("hook-registered-again", self._marks, {"piled": tuple(self._found)})

    def registered(self, module: nn.Module, table: str) -> None:
        """A module has got a hook; one that has two of the same code is looked at from here on."""
        codes = Counter(_codes(module, {"": table}))
        if len(self._modules) < _MAX_MODULES and any(count > 1 for count in codes.values()):
            key = id(module)
            self._modules[key] = weakref.ref(module, lambda _: self._modules.pop(key, None))

    def before_step(self, parameters: list[Tensor], backward: Mark, step: Mark) -> None:
        known_before = len(self._found)
        for parameter in parameters:
            if parameter._backward_hooks or parameter._post_accumulate_grad_hooks:
                self._look(parameter, OF_TENSOR)
        for known in list(self._modules.values()):
            if (module := known()) is not None:
                self._look(module, OF_MODULE)
        if len(self._found) > known_before:
            self._marks = {"backward": (backward,), "step": (step,)}

    def _look(self, owner: Any, tables: Mapping[str, str]) -> None:
        for code, count in Counter(_codes(owner, tables)).items():
            weak, counts = self._known(owner, code)
            if len(counts) == _ROUNDS or counts[-1:] == (count,):
                continue
            counts = _SETTLED if counts and count < counts[-1] else (*counts, count)
            self._counts[id(owner), code] = weak, counts
            if len(counts) == _ROUNDS and counts != _SETTLED:
                self._found.append(Piled(weak, code, count))

    def _known(self, owner: Any, code: CodeType) -> tuple[Callable[[], Any], tuple[int, ...]]:
        key = id(owner), code
        if key not in self._counts:
            make = Weak if isinstance(owner, Tensor) else weakref.ref
            self._counts[key] = make(owner, partial(self._gone, key)), ()
        return self._counts[key]

    def _gone(self, key: tuple[int, CodeType], _: object) -> None:
        self._counts.pop(key, None)


def _codes(owner: Any, tables: Mapping[str, str]) -> Iterator[CodeType]:
    for table in tables.values():
        for hook in list(hooks_in(owner, table).values()):
            if (code := code_of(hook)) is not None:
                yield code
