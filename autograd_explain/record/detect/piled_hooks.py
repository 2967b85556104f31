"""Tensor hooks that every round registers once more on what an optimizer steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from types import CodeType

from torch import Tensor

from .finding import CandidateFault, Mark, Marks, Weak, weak

_ROUNDS = 3  #: steps, at each of which there is one more


class PiledHooks:
    """Counts the hooks of one code object on each parameter, step by step."""

    def __init__(self) -> None:
        self.found: list[CandidateFault] = []
        self._counts: dict[tuple[int, CodeType], tuple[Weak, list[int]]] = {}

    def begin(self) -> None:
        """A cell begins."""
        self.found.clear()

    def before_step(self, parameters: list[Tensor], backward: Mark, step: Mark) -> None:
        for parameter in (p for p in parameters if p._backward_hooks):
            for code, count in Counter(_codes(parameter)).items():
                key = id(parameter), code
                if key not in self._counts:
                    gone = partial(self._gone, key)
                    self._counts[key] = Weak(parameter, gone), []
                _, counts = self._counts[key]
                if len(counts) == _ROUNDS:
                    continue
                counts.append(count)
                if len(counts) == _ROUNDS and counts[0] < counts[1] < counts[2]:
                    evidence = {"parameters": (weak(parameter),), "hook": code, "times": count}
                    marks: Marks = {"backward": (backward,), "step": (step,)}
                    self.found.append(CandidateFault("hook-registered-again", marks, evidence))

    def _gone(self, key: tuple[int, CodeType], _: object) -> None:
        self._counts.pop(key, None)


def _codes(parameter: Tensor) -> Iterator[CodeType]:
    for hook in list((parameter._backward_hooks or {}).values()):
        code = getattr(hook, "__code__", None)
        if isinstance(code, CodeType):
            yield code
