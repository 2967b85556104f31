"""Results that depend on numbers, made up where stand-ins on `meta` have none."""

from __future__ import annotations

from typing import Any

import torch

from .unknown import UNKNOWN

_NUMBERLESS = ("meta", "data-independent", "data-dependent", "nonzero")


def substitute(op: str, inputs: tuple[Any, ...], error: Exception) -> Any:
    """A plausible result of an operation that failed for want of numbers, or UNKNOWN."""
    owner = inputs[0] if inputs else None
    if not isinstance(owner, torch.Tensor) or not any(w in str(error) for w in _NUMBERLESS):
        return UNKNOWN
    try:
        if op in ("item", "float", "int", "bool", "__float__", "__int__"):
            return _number(owner)
        if op in ("tolist", "numpy"):
            return _numbers(owner, op)
        if op == "__getitem__":
            return owner[_without_masks(inputs[1])]
        if op == "copy_" and len(inputs) == 3:
            owner[_without_masks(inputs[1])] = inputs[2]
            return None
        if op == "masked_select":
            return owner.flatten()[_some(inputs[1])]
        if op in ("nonzero", "argwhere"):
            return torch.zeros(_count(owner), owner.dim(), dtype=torch.long, device="meta")
    except Exception:
        return UNKNOWN
    return UNKNOWN


def _number(tensor: torch.Tensor) -> Any:
    if tensor.dtype is torch.bool:
        return False
    return 0.5 if tensor.is_floating_point() else 1


def _numbers(tensor: torch.Tensor, op: str) -> Any:
    if tensor.numel() > 10_000:
        return UNKNOWN
    found = torch.zeros(tensor.shape, dtype=tensor.dtype, device="cpu")
    return found.numpy() if op == "numpy" else found.tolist()


def _without_masks(key: Any) -> Any:
    """An index whose masks are replaced by as many positions as they may select."""
    if isinstance(key, tuple):
        parts: list[Any] = []
        for part in key:
            found = _without_masks(part)
            parts.extend(found if isinstance(found, tuple) else (found,))
        return tuple(parts)
    if isinstance(key, torch.Tensor) and key.dtype is torch.bool:
        return (_some(key),) * key.dim()
    return key


def _some(mask: torch.Tensor) -> torch.Tensor:
    return torch.zeros(_count(mask), dtype=torch.long, device="meta")


def _count(mask: torch.Tensor) -> int:
    return max(1, mask.numel() // 2)
