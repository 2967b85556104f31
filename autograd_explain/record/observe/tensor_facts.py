"""Facts of a tensor that can be read without the program noticing.

Everything here runs under `DisableTorchFunction`, so neither a user's mode below ours nor a
tensor subclass sees the question.  `grad_fn` and `is_leaf` are never read: for a view they may
rebuild its history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor

quiet = torch._C.DisableTorchFunction
_PLAIN = frozenset({Tensor, torch.nn.Parameter})
#: Most of what operations are given besides tensors.
_SCALARS = frozenset({int, float, bool, str, type(None), slice, torch.dtype, torch.device})

#: Longer lists of tensors are looked at only in part.
MAX_LISTED = 1024
_LISTED = slice(MAX_LISTED)


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
        kind = type(value)  # `isinstance` would ask the user's objects for their `__class__`
        if kind in _PLAIN:
            yield value
        elif kind in _SCALARS:
            continue
        elif issubclass(kind, Tensor):
            yield value
        elif issubclass(kind, (list, tuple)):
            plain = list if issubclass(kind, list) else tuple
            found = plain.__getitem__(value, _LISTED)
            yield from (v for v in found if issubclass(type(v), Tensor))
        elif issubclass(kind, dict):
            yield from (v for v in dict.values(value) if issubclass(type(v), Tensor))


def any_requires_grad(values: Iterable[Any]) -> bool:
    """Whether a tensor among arguments does: asked of each call that made no node."""
    for value in values:
        kind = type(value)
        if kind in _PLAIN:
            if value.requires_grad:
                return True
        elif kind not in _SCALARS and any(t.requires_grad for t in tensors_in((value,))):
            return True
    return False


def root(tensor: Tensor) -> Tensor:
    """What a view is a view of (`_base`, which rebuilds nothing); else the tensor itself."""
    base = tensor._base
    return tensor if base is None else base


class unseen:
    """Operations of our own in the body reach no mode of the user's, no subclass and no graph."""

    def __enter__(self) -> None:
        self._stack = stack = ExitStack()
        for context in (quiet(), torch._C._DisableTorchDispatch(), torch.no_grad()):
            stack.enter_context(context)

    def __exit__(self, *error: object) -> None:
        self._stack.close()


def is_plain(tensor: Tensor) -> bool:
    """Whether it has memory of its own and is no subclass: its values may be read."""
    return type(tensor) in _PLAIN and storage(tensor) != 0
