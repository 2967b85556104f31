"""Differences in a loss whose sides follow the same parameters alike: what one gives the gradient,
the other takes away, as where an old log-probability has kept its graph.

The numbers of the sides agree in two rounds; then their gradients are compared, where the loss
asks for one: what is to become 0 and has become it is no fault.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch

from .differences import direction
from .gradient_log import leaves_of
from .nonfinite import frames
from .plan import CodeRange
from .tracked import has_history

#: The names of what computes one.
DIFFERENCES = frozenset({"sub", "subtract"})
_SIDES = 2
_MANY = 1_000  #: differences in a round
_ROUNDING = 1e-5
_NOISE = 1e-3  #: of a gradient: the sides may have been computed in another order

Gradients = tuple[torch.Tensor | None, ...]
Engine = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Cancelled:
    """Such a difference; `older` is the number of the side that was computed first."""

    place: tuple[CodeRange, ...]
    leaves: tuple[torch.Tensor, ...]
    older: int


class CancelledDifferences:
    """Notes the differences of each round, and compares once what is equal in two of them."""

    def __init__(self) -> None:
        self._now: dict[tuple[CodeRange, ...], tuple[torch.Tensor, ...]] = {}
        self._before: Collection[tuple[CodeRange, ...]] = ()
        self._compared: set[tuple[CodeRange, ...]] = set()

    def computed(self, sides: tuple[Any, ...], result: Any) -> None:
        """A difference of these was computed."""
        if len(sides) != _SIDES or len(self._now) == _MANY:
            return
        if all(isinstance(s, torch.Tensor) and has_history(s) for s in sides) and _agree(*sides):
            place = frames()[:1]
            if place:
                self._now[place] = *sides, result

    def before_backward(
        self, roots: Sequence[torch.Tensor], given: Sequence[Any], engine: Engine
    ) -> list[Cancelled]:
        """What is found where a whole backward from `roots` begins, which are `given` gradients."""
        found: list[Cancelled] = []
        for place in self._now:
            if place in self._before and place not in self._compared:
                self._compared.add(place)
                with suppress(Exception):  # what the program's hooks make of one backward more
                    found += self._compare(place, roots, given, engine)
        self._before = tuple(self._now)
        self._now.clear()
        return found

    def _compare(
        self,
        place: tuple[CodeRange, ...],
        roots: Sequence[torch.Tensor],
        given: Sequence[Any],
        engine: Engine,
    ) -> Iterator[Cancelled]:
        *sides, result = self._now[place]
        leaves = _shared_leaves(sides)
        asked = _gradients(engine, roots, given, (result,)) if leaves else ()
        if not any(g is not None and bool(g.any()) for g in asked):
            return
        if _cancel([_gradients(engine, (s,), (direction(s, 0),), leaves) for s in sides]):
            numbers = [side.grad_fn._sequence_nr() for side in sides]  # type: ignore[union-attr]
            yield Cancelled(place, leaves, int(numbers[1] < numbers[0]))


def _agree(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype or not one.is_floating_point():
        return False
    return bool(torch.allclose(one, other, rtol=_ROUNDING, atol=_ROUNDING * float(one.abs().max())))


def _shared_leaves(sides: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The leaves behind both; () where one side has others."""
    found = [{id(t): t for t in leaves_of((side,))[0]} for side in sides]
    return tuple(found[0].values()) if found[0].keys() == found[1].keys() else ()


def _gradients(
    engine: Engine,
    roots: Sequence[torch.Tensor],
    given: Sequence[Any],
    inputs: Sequence[torch.Tensor],
) -> Gradients:
    """As `torch.autograd.grad` asks the engine for them (torch/autograd/__init__.py)."""
    found: Gradients = engine(
        tuple(roots), tuple(given), True, False, tuple(inputs), True, accumulate_grad=False
    )
    return found


def _cancel(sides: Sequence[Gradients]) -> bool:
    """Whether the gradients are the same, and not all of them zeros."""
    pairs = [(a, b) for a, b in zip(*sides, strict=True) if a is not None or b is not None]
    some = any(a is not None and bool(a.any()) for a, _ in pairs)
    return some and all(
        a is not None and b is not None and bool((a - b).abs().max() <= _NOISE * a.abs().max())
        for a, b in pairs
    )
