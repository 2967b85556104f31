"""Differences of equal numbers: their sides may be one computation, made twice."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..observe.tensor_facts import is_plain
from .contents import is_readable
from .values import MAX_VALUES

_SIDES = 2
_ROUNDING = 1e-5  #: of numbers that were computed in another order


def agree(sides: tuple[Any, ...]) -> bool:
    """Whether these are two tensors that require grad and have the same numbers, which are in the
    CPU's memory: nothing waits for a device."""
    if len(sides) != _SIDES or not all(isinstance(s, Tensor) and s.requires_grad for s in sides):
        return False
    one, other = sides
    alike = one.shape == other.shape and one.dtype == other.dtype and one.is_floating_point()
    if not alike or one.numel() > MAX_VALUES or not all(s.is_cpu and is_plain(s) for s in sides):
        return False
    return bool(torch.allclose(one, other, rtol=_ROUNDING, atol=_ROUNDING))


def is_nothing_beside(total: Tensor, term: Tensor) -> Tensor | None:
    """Whether a sum says by its number that its other terms are equal to this one, but for the
    sign.  It is told on their device: nothing waits for it."""
    if not all(is_plain(t) and is_readable(t) for t in (total, term)):
        return None
    return (term != 0) & (total.abs() <= _ROUNDING * term.abs())
