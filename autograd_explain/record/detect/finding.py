"""What the watchers hand over: sites and weak references, no lines yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor

from ...isolation.weak_references import Weak, weak

__all__ = ["CandidateFault", "Mark", "Marks", "Reference", "TimeShare", "Weak", "weak"]

#: Gives a tensor for as long as it, or its memory, is there.
Reference = Callable[[], Tensor | None]


class Mark(NamedTuple):
    """A site at a time.  `made` tells an operation from a write."""

    site: int
    clock: int
    made: bool = True


Marks = dict[str, tuple[Mark, ...]]


@dataclass(frozen=True)
class CandidateFault:
    """A finding by sites.  `sure` is False where the program may well mean it: then it is a
    one-line note and no alarm."""

    name: str
    marks: Marks
    evidence: Mapping[str, Any] = field(default_factory=dict)
    sure: bool = True


class TimeShare:
    """Lets a costly look happen at first, then only within a share of the time that passes."""

    def __init__(self, share: float, free: int) -> None:
        self._share = share
        self._free = free
        self._spent = 0.0
        self._start = time.perf_counter()

    def allows(self, *, free: bool = True) -> bool:
        """Whether to look now; `free` is False for a look that must keep to its share."""
        if free and self._free > 0:
            self._free -= 1
            return True
        return self._spent < self._share * (time.perf_counter() - self._start)

    def is_spent(self, blind: set[str]) -> bool:
        """Whether there is no time left to search a graph, which is then noted."""
        if self.allows():
            return False
        blind.add("graph_not_searched")
        return True

    def __enter__(self) -> None:
        self._begun = time.perf_counter()

    def __exit__(self, *error: object) -> None:
        self._spent += time.perf_counter() - self._begun
