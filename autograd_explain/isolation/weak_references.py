"""Weak references to tensors that no program notices.

`torch.utils.swap_tensors` refuses a tensor that anybody refers to weakly.  `Module.to` and
`load_state_dict` call it for wrapper subclasses (DTensor's way) and wherever
`torch.__future__.set_swap_module_params_on_conversion` was switched on.  It asks
`weakref.getweakrefs`; from what it is told ours are left out.  A swap leaves the Python object
alone and exchanges what is in it, so that a reference to the object stays right.
"""

from __future__ import annotations

import weakref
from typing import Any

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
