"""Shapes of tensors, those of nested tensors included."""

from __future__ import annotations

import torch


def shape_of(tensor: torch.Tensor) -> tuple[int, ...] | None:
    """The shape; None for a nested tensor, whose rows need not have one shape.

    Its `.shape` raises (strided) or holds symbols in place of numbers (jagged).
    """
    return None if tensor.is_nested else tuple(tensor.shape)


def shown_shape(tensor: torch.Tensor) -> str:
    """`[2, 3]`; of a nested tensor `[2, *]`, as its documentation writes what has no one size."""
    if not tensor.is_nested:
        return str(list(tensor.shape))
    return f"[{', '.join(_size(tensor, n) for n in range(tensor.dim()))}]"


def _size(tensor: torch.Tensor, dimension: int) -> str:
    try:
        size = tensor.size(dimension)
    except RuntimeError:
        return "*"
    return str(size) if isinstance(size, int) else "*"
