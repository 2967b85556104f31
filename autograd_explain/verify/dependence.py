"""Whether a loss depends on leaves that its backward does not reach.

The leaves that were handed to torch since the backward before, but got nothing from this one, are
moved a little right before their first use: where the loss follows, something between them and it
has cut the graph.  It may be meant (a target, a straight-through trick), so this speaks against a
rewrite among others, and proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .differences import direction
from .gradient_log import leaves_of
from .history_mode import BackwardMode
from .tracked import tensors_in

_STEP = 1e-2  #: a share of the leaf's own magnitude
_NOISE = 1e-6  #: relative change of a loss that is the same


@dataclass(frozen=True)
class Reach:
    """A backward: its loss, and which of the leaves used since the one before it did not reach, by
    their number in the order of use."""

    loss: float
    missed: tuple[int, ...]


@dataclass(frozen=True)
class Shift:
    """The leaves of these numbers are to be moved, in the round that this backward ends."""

    backward: int
    leaves: tuple[int, ...]


class Dependence(BackwardMode):
    """Notes what each backward of a run reaches, and moves what a shift asks for."""

    def __init__(self, shift: Shift | None = None) -> None:
        super().__init__()
        self.found: list[Reach] = []
        self._shift = shift
        self._used: dict[int, torch.Tensor] = {}

    def call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for tensor in tensors_in((*args, *kwargs.values())):
            if id(tensor) not in self._used and _is_leaf(tensor):
                self._move(tensor, len(self._used))
                self._used[id(tensor)] = tensor
        return func(*args, **kwargs)

    def _move(self, leaf: torch.Tensor, number: int) -> None:
        shift = self._shift
        if shift is not None and shift.backward == len(self.found) and number in shift.leaves:
            leaf.data.add_(direction(leaf, number), alpha=_STEP)

    def around(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
                self._note([t for t in outputs if isinstance(t, torch.Tensor)])
            return original(outputs, *args, **kwargs)

        return run

    def _note(self, outputs: Sequence[torch.Tensor]) -> None:
        reached = {id(leaf) for leaf in leaves_of(outputs)[0]}
        loss = float(sum(float(t.detach().double().sum()) for t in outputs if not t.is_complex()))
        missed = tuple(n for n, key in enumerate(self._used) if key not in reached)
        self.found.append(Reach(loss, missed))
        self._used.clear()


def _is_leaf(tensor: torch.Tensor) -> bool:
    with torch._C.DisableTorchFunctionSubclass():
        plain = tensor.requires_grad and tensor.is_floating_point() and not tensor._is_view()
        return plain and tensor.is_leaf


def shift_for(found: Sequence[Reach]) -> Shift | None:
    """What to move: all that the last backward which missed any has missed."""
    for number in reversed(range(len(found))):
        if found[number].missed:
            return Shift(number, found[number].missed)
    return None


def follows(shift: Shift, before: Sequence[Reach], after: Sequence[Reach]) -> bool:
    """Whether the loss is another once the leaves have moved."""
    if len(after) <= shift.backward:
        return False
    first, second = before[shift.backward].loss, after[shift.backward].loss
    if not math.isfinite(first) or not math.isfinite(second):
        return False
    return abs(first - second) > _NOISE * max(abs(first), abs(second))
