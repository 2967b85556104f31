"""Weak references to tensors that no program notices.

`torch.utils.swap_tensors` refuses a tensor that anybody refers to weakly.  `Module.to` and
`load_state_dict` call it for wrapper subclasses (DTensor's way) and wherever
`torch.__future__.set_swap_module_params_on_conversion` was switched on.  It asks
`weakref.getweakrefs`; from what it is told ours are left out.  A swap leaves the Python object
alone and exchanges what is in it, so that a reference to the object stays right.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import torch
import torch.utils


class Weak(weakref.ref[torch.Tensor]):
    """A weak reference to a tensor of the program's, only to be held by an owner that `hide` was
    called for."""

    __slots__ = ()


def weak(tensor: torch.Tensor) -> Weak:
    """The one reference to a tensor that has no callback: by it the tensor can be told from others
    when it is gone."""
    for known in weakref.getweakrefs(tensor):
        if type(known) is Weak and known.__callback__ is None:
            return known
    return Weak(tensor)


V = TypeVar("V")


class ByTensor(Generic[V]):
    """A value for each of the program's tensors, by identity and without keeping them.

    What was kept for a tensor that is gone is never found for another at its address.
    """

    def __init__(self) -> None:
        hide(self)
        self._kept: dict[int, tuple[Weak, V]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, tensor: torch.Tensor) -> V | None:
        found = self._kept.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor else None

    def __setitem__(self, tensor: torch.Tensor, value: V) -> None:
        self._kept[id(tensor)] = (weak(tensor), value)

    def forget(self) -> bool:
        """Drop what is kept for tensors that are gone, or else the older half of all.
        True where nothing was lost that could have been asked for."""
        gone = [key for key, (tensor, _) in self._kept.items() if tensor() is None]
        self._drop(gone or list(self._kept)[: len(self._kept) // 2])
        return bool(gone)

    def _drop(self, keys: Iterable[int]) -> None:
        for key in keys:
            del self._kept[key]


class _Weakref:
    """The module `weakref` as torch.utils sees it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(weakref, name)

    @staticmethod
    def getweakrefs(of: Any) -> list[Any]:
        return [r for r in weakref.getweakrefs(of) if type(r) is not Weak]


_owners = 0


def hide(owner: object) -> None:
    """Keep `Weak` references from `swap_tensors` for as long as their owner lives."""
    global _owners
    _owners += 1
    if vars(torch.utils).get("weakref") is weakref:
        torch.utils.weakref = _Weakref()  # type: ignore[assignment, attr-defined]
    weakref.finalize(owner, _release)


def _release() -> None:
    global _owners
    _owners -= 1
    if not _owners and isinstance(vars(torch.utils).get("weakref"), _Weakref):
        torch.utils.weakref = weakref  # type: ignore[attr-defined]
