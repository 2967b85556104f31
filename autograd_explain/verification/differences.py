"""Finite differences of a program's losses, to hold its gradients against.

A write that autograd does not see may carry a derivative: after `h.data.div_(c)` the loss depends
on what was before `h` by a factor that no node stands for.  The gradients of two runs may agree
on what both of them miss; the loss itself does not.  So the program is run again with the leaves
of one backward moved a little, all along one random direction, right before their first use.

It says nothing against a gradient that stops somewhere on purpose (a detached target, a number
taken from a tensor, a straight-through trick): the judge asks for it only where memory of the
graph was changed in a way that cannot be followed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch._C._autograd import _get_sequence_nr as sequence

from ..nodes import GraphTraversal
from .gradient_log import MAX_NODES, leaves_of
from .history_mode import BackwardMode
from .reference import same
from .tracked import has_history, tensors_in

#: Multiples of the step at which the loss is looked at: two central differences, whose distance
#: tells how much the truncation and the kinks of the loss make of it.
POINTS = (-2, -1, 1, 2)
#: A share of the leaf's own magnitude: near the cube root of the precision, where the errors of
#: rounding and of truncation are alike.
_STEPS = {torch.float64: 1e-5, torch.float32: 5e-3}
_SEED = 20_240_613
_ROUNDING = 8  # operations whose rounding errors add up in the same direction
_FLOOR = 1e-3  # of the slope: gradients are compared with 1e-4
_MAX_BACKWARDS = 3


@dataclass(frozen=True)
class Nudge:
    """Which leaves to move by how much: those that the torch calls of these numbers use, for the
    backward of this number.  `factors` are multiples of a leaf's magnitude, in order of use."""

    backward: int
    calls: tuple[int, ...]
    factors: tuple[float, ...]


@dataclass(frozen=True)
class Slope:
    """A backward: its loss, and how steep its gradients say the loss is.

    `leaves` are serial numbers of those that it reached.  For every leaf that was used since the
    backward before, in that order: the number of the torch call in `calls`, and in `terms` the
    gradient times the direction, None where it reached them not.  `terms` are empty where a nudge
    would show something else than this backward's gradient: a graph that is older than the
    backward before it, a leaf that was written in between, a loss that is no single number.
    """

    loss: float
    leaves: tuple[int, ...]
    calls: tuple[int, ...] = ()
    terms: tuple[float | None, ...] = ()
    dtype: torch.dtype = torch.float32


@dataclass(frozen=True)
class _Use:
    """The first use of a leaf since the last backward."""

    leaf: torch.Tensor
    value: torch.Tensor
    call: int


class Slopes(BackwardMode):
    """Notes the slope of every backward of a run, and moves what a nudge asks for."""

    def __init__(self, nudge: Nudge | None = None) -> None:
        super().__init__()
        self.found: list[Slope] = []
        self._nudge = nudge
        self._calls = 0
        self._since = sequence()
        self._uses: dict[int, _Use] = {}
        self._serials: dict[int, int] = {}
        self._kept: list[torch.Tensor] = []  # their identities stay theirs

    def call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._calls += 1
        given = tensors_in((*args, *kwargs.values()))
        new = list({id(t): t for t in given if self._is_new(t)}.values())
        self._move(new)
        result = func(*args, **kwargs)
        if new and any(has_history(t) for t in tensors_in((result,))):
            self._uses.update((id(t), _Use(t, t.detach().clone(), self._calls)) for t in new)
        return result

    def _is_new(self, tensor: torch.Tensor) -> bool:
        if not tensor.requires_grad or id(tensor) in self._uses:
            return False
        return not tensor._is_view() and tensor.is_leaf

    def _move(self, leaves: list[torch.Tensor]) -> None:
        nudge = self._nudge
        if nudge is None or nudge.backward != len(self.found) or self._calls not in nudge.calls:
            return
        for order, leaf in enumerate(leaves, len(self._uses)):
            if order < len(nudge.factors):
                leaf.data.add_(direction(leaf, order), alpha=nudge.factors[order])

    def around(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
                leaves = leaves_of(outputs)[0]
                before = [_gradient(t) for t in leaves]
                usable = self._usable(outputs, leaves, args, kwargs)
                loss = float(outputs[0].detach()) if usable else 0.0
            result = original(outputs, *args, **kwargs)
            with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
                self._note(loss, leaves, before, usable, outputs[0].dtype)
            return result

        return run

    def _usable(self, outputs: Any, leaves: Sequence[torch.Tensor], args: Any, kwargs: Any) -> bool:
        """Whether a nudge of the leaves would show the gradient of this backward."""
        if len(outputs) != 1 or outputs[0].numel() != 1 or outputs[0].is_complex():
            return False
        if not kwargs.get("accumulate_grad") or (len(args) > 3 and args[3]):
            return False
        if args and args[0] and any(g is not None and not bool((g == 1).all()) for g in args[0]):
            return False
        uses = [self._uses.get(id(t)) for t in leaves]
        if not all(u is not None and same(u.value, u.leaf.detach()) for u in uses):
            return False
        walk = GraphTraversal([outputs[0].grad_fn], limit=MAX_NODES)
        return all(r.sequence >= self._since for r in walk) and walk.complete

    def _note(
        self,
        loss: float,
        leaves: Sequence[torch.Tensor],
        before: Sequence[torch.Tensor],
        usable: bool,
        dtype: torch.dtype,
    ) -> None:
        serials = tuple(self._serial(t) for t in leaves)
        slope = Slope(loss, serials)
        if usable:
            reached = {id(t): _gradient(t) - b for t, b in zip(leaves, before, strict=True)}
            terms = tuple(
                _term(reached.get(key), use.leaf, order)
                for order, (key, use) in enumerate(self._uses.items())
            )
            calls = tuple(use.call for use in self._uses.values())
            coarsest = max((dtype, *(t.dtype for t in leaves)), key=lambda d: torch.finfo(d).eps)
            slope = Slope(loss, serials, calls, terms, coarsest)
        self.found.append(slope)
        self._uses.clear()
        self._since = sequence()

    def _serial(self, tensor: torch.Tensor) -> int:
        if id(tensor) not in self._serials:
            self._kept.append(tensor)
        return self._serials.setdefault(id(tensor), len(self._serials))


def _gradient(leaf: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad.detach().clone()


def direction(leaf: torch.Tensor, order: int) -> torch.Tensor:
    """The same in every run: of the leaf's own magnitude, or of 1 for zeros."""
    generator = torch.Generator().manual_seed(_SEED + order)
    found = torch.randn(leaf.shape, generator=generator, dtype=torch.float64)
    magnitude = float(leaf.detach().double().pow(2).mean().sqrt()) or 1.0
    return (found * magnitude).to(leaf.dtype)


def _term(gradient: torch.Tensor | None, leaf: torch.Tensor, order: int) -> float | None:
    if gradient is None:
        return None
    return float((gradient.double() * direction(leaf, order).double()).sum())


def chosen(slopes: Sequence[Slope]) -> tuple[int, ...]:
    """The backwards to look at, so that each leaf's last gradient is: () where that cannot be."""
    found: list[int] = []
    open_ = {leaf for s in slopes for leaf in s.leaves}
    for number in reversed(range(len(slopes))):
        slope = slopes[number]
        if slope.terms and open_.intersection(slope.leaves):
            found.append(number)
            open_ -= {*slope.leaves}
    return tuple(found) if not open_ and len(found) <= _MAX_BACKWARDS else ()


def nudges(number: int, slope: Slope) -> tuple[Nudge, ...]:
    """The runs that tell about a backward, one for each of `POINTS`."""
    factors = _factors(slope)
    step = _STEPS.get(slope.dtype, _STEPS[torch.float32])
    return tuple(
        Nudge(number, slope.calls, tuple(point * step * f for f in factors)) for point in POINTS
    )


def _factors(slope: Slope) -> tuple[float, ...]:
    """Each leaf is to raise the loss alike: an error in one of them must show beside the others,
    and errors must not cancel.  Those that the backward did not reach stay: what is cut off from
    it may be so on purpose."""
    sizes = [abs(t) for t in slope.terms if t]
    middle = median(sizes) if sizes else 0.0
    return tuple(_factor(t, middle) for t in slope.terms)


def _factor(term: float | None, middle: float) -> float:
    if not term:
        return 0.0 if term is None else 1.0
    return math.copysign(min(10.0, max(0.1, middle / abs(term))), term)


def agrees(slope: Slope, losses: Sequence[float]) -> bool:
    """Whether the losses at `POINTS` rise as the gradients say, told beyond doubt."""
    step = _STEPS.get(slope.dtype, _STEPS[torch.float32])
    terms = [f * t for f, t in zip(_factors(slope), slope.terms, strict=True) if t is not None]
    far_below, below, above, far_above = losses
    near, far = (above - below) / (2 * step), (far_above - far_below) / (4 * step)
    largest = max(abs(value) for value in losses)
    rounding = _ROUNDING * torch.finfo(slope.dtype).eps * largest / step
    total = sum(abs(t) for t in terms)
    tolerated = 2 * abs(near - far) + rounding + _FLOOR * total
    if not tolerated <= total * min(0.05, 0.5 / len(terms)):
        return False  # nothing can be told: kinks, noise, a loss that is no number
    return abs(sum(terms) - (4 * near - far) / 3) <= tolerated
