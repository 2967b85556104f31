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
from torch.nn import Parameter

quiet = torch._C.DisableTorchFunction
#: How many function modes would be asked; the recorder's own is off the stack while it works.
modes = torch._C._len_torch_function_stack
_PLAIN = frozenset({Tensor, Parameter})
#: Most of what operations are given besides tensors.
_SCALARS = frozenset({int, float, bool, str, type(None), slice, torch.dtype, torch.device})

#: Longer lists of tensors are looked at only in part.
MAX_LISTED = 1024
_LISTED = slice(MAX_LISTED)
_ROW = 16  #: Of a row that begins with as many numbers, no other item is looked at.


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
        kept: int = tensor.untyped_storage()._cdata
        return kept
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


def nested_tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    """The tensors in lists and tuples at any depth, as tensors are made of them: `[(x, y)]`."""
    for value in values:
        if type(value) in (list, tuple) and not _SCALARS.issuperset(map(type, value[:_ROW])):
            yield from (v for v in value[_LISTED] if issubclass(type(v), Tensor))
            yield from nested_tensors(value[_LISTED])


def any_requires_grad(values: Iterable[Any]) -> bool:
    """Whether a tensor among arguments does."""
    return bool(requiring_grad(values))


def requiring_grad(values: Iterable[Any]) -> list[Tensor]:
    """The tensors among arguments that require a gradient."""
    found = []
    for value in values:
        kind = type(value)
        if kind is Tensor or kind is Parameter:
            if value.requires_grad:
                found.append(value)
        elif kind not in _SCALARS:
            found += [tensor for tensor in tensors_in((value,)) if tensor.requires_grad]
    return found


def requires_grad_at_sight(values: Iterable[Any]) -> bool | None:
    """Whether a tensor among arguments does: asked of each call that made no node.

    None where the question would reach somebody, or takes a longer look: then it is to be asked
    under `quiet`, which costs more than the answer.
    """
    if modes():
        return None
    found = False
    try:
        for value in values:
            kind = type(value)
            if kind is Tensor or kind is Parameter:
                found = found or value.requires_grad
            elif kind not in _SCALARS:
                # A shape or an index.
                if kind is not tuple and kind is not list:
                    return None
                if not _SCALARS.issuperset(map(type, value)):
                    return None
    except TypeError:  # a class of a program's that cannot be hashed
        return None
    return found


def is_unasked(tensor: Any) -> bool:
    """Whether it is a tensor whose facts can be read without `quiet`."""
    kind = type(tensor)
    return (kind is Tensor or kind is Parameter) and not modes()


def root(tensor: Tensor) -> Tensor:
    """What a view is a view of (`_base`, which rebuilds nothing); else the tensor itself."""
    base = tensor._base
    return tensor if base is None else base


class unseen:
    """Operations of our own in the body reach no mode of the user's, no subclass and no graph."""

    def __enter__(self) -> None:
        self._contexts = quiet(), torch._C._DisableTorchDispatch(), torch.no_grad()
        for context in self._contexts:
            context.__enter__()

    def __exit__(self, *error: object) -> None:
        for context in reversed(self._contexts):
            context.__exit__(None, None, None)


def is_plain(tensor: Tensor) -> bool:
    """Whether it has memory of its own and is no subclass: its values may be read."""
    return type(tensor) in _PLAIN and storage(tensor) != 0


def is_zero(gradient: Tensor) -> bool:
    """Whether it is known to be; what a subclass or a sparse one holds is not looked at."""
    return is_plain(gradient) and not bool(gradient.any())
