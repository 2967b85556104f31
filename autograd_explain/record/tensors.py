"""Facts of a tensor that can be read without the program noticing.

Everything here runs under `DisableTorchFunction`, so neither a user's mode below ours nor a
tensor subclass sees the question.  `grad_fn` and `is_leaf` are never read: for a view they may
rebuild its history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

quiet = torch._C.DisableTorchFunction

#: Longer lists of tensors are looked at only in part.
MAX_LISTED = 1024


def version(tensor: Tensor) -> int:
    """The version counter; -1 where there is none (inference tensors)."""
    try:
        return tensor._version
    except RuntimeError:
        return -1


def storage(tensor: Tensor) -> int:
    """The address of the storage object (its memory is not touched: that would undo
    copy-on-write); 0 for tensors without one."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):
        return 0


def address(tensor: Tensor) -> int:
    """The address of the tensor object."""
    return tensor._cdata


def tensors_in(values: Iterable[Any]) -> Iterator[Tensor]:
    """The tensors among arguments, those in lists, tuples and dicts included."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from (v for v in value[:MAX_LISTED] if isinstance(v, Tensor))
        elif isinstance(value, dict):
            yield from (v for v in value.values() if isinstance(v, Tensor))


def root(tensor: Tensor) -> Tensor:
    """What a view is a view of (`_base`, which rebuilds nothing); else the tensor itself."""
    base = tensor._base
    return tensor if base is None else base
