"""What a walk may cost."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import torch


class WalkEnded(BaseException):
    """The walk stops here; no `except` of the user's may hold it up."""


class Reached(WalkEnded):
    """The walk met the failure itself."""


class OutOfBudget(WalkEnded):
    """The walk has used up its steps or its time."""


class TooBig(WalkEnded):
    """Stand-ins with numbers in them cost too much for this program."""


@dataclass(frozen=True)
class Limits:
    """Bounds of a walk.

    Counted in weighted operations, so that the same program gives the same walk everywhere;
    `seconds` is the last resort.  `elements` and `slow` bound one stand-in and one operation.
    """

    steps: int = 40_000
    loop: int = 2_400
    iterations: int = 3
    seconds: float = 0.8
    elements: int = 400_000
    slow: float = 0.04


class Budget:
    """Counts what a walk spends and ends it where that is too much."""

    def __init__(self, limits: Limits, big: bool) -> None:
        self.limits = limits
        self.spent = 0
        self._big = big
        self._elements = 0
        self._stop = time.monotonic() + limits.seconds
        self._closed = False

    def close(self) -> None:
        """After the walk nothing of its twin code (a `__del__`, a property) runs any more."""
        self._closed = True

    def spend(self, weight: int) -> None:
        self.spent += weight
        if self._closed or self.spent > self.limits.steps:
            raise OutOfBudget
        if self.spent % 64 < weight and time.monotonic() > self._stop:
            raise OutOfBudget

    def measure(self, result: Any, seconds: float) -> None:
        """Ends a walk with numbers that has become a computation."""
        if self._big or not isinstance(result, torch.Tensor):
            return
        count = result.numel()
        self._elements += count
        if count > self.limits.elements or self._elements > 20 * self.limits.elements:
            raise TooBig
        if seconds > self.limits.slow and count > 4_000:
            raise TooBig

    def is_long(self, start: int) -> bool:
        """Whether a loop that began at `start` has had its share."""
        share = self.limits.loop if self.spent < self.limits.steps // 2 else 0
        return self.spent - start > share


def too_big(name: str, left: Any, right: Any) -> bool:
    """Whether plain Python arithmetic would take too long or make too much."""
    if isinstance(left, int) and isinstance(right, int):
        if name == "pow":
            return abs(right) > 64 or left.bit_length() * max(right, 0) > 4096
        return name == "lshift" and right > 4096
    if name == "mul":
        for items, count in ((left, right), (right, left)):
            if isinstance(items, (list, tuple, str, bytes)) and isinstance(count, int):
                return len(items) * count > 100_000
    return False
