"""Writes that autograd does not see, into tensors that have a history.

After `h.data[done] = 0` the forward pass goes on with the zeroed value, while the gradient still
flows as if nothing had been written.  The gradient of what was computed treats the write as an
operation.  Both readings are run: only where they agree, or for the second one, the reference
says what was meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_DUNDERS = {
    "__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__ifloordiv__",
    "__imod__", "__ipow__", "__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__",
}  # fmt: skip
#: In-place by name, but they change no values.
_NO_WRITES = {
    "requires_grad_", "detach_", "share_memory_", "squeeze_", "unsqueeze_", "t_", "transpose_",
    "swapaxes_", "swapdims_", "rename_", "as_strided_", "set_", "resize_", "resize_as_",
    "apply_", "map_", "map2_",
}  # fmt: skip


class UntrackedWrites(TorchFunctionMode):
    """Notices writes to tensors with a history that autograd does not record.

    With `track` it makes autograd record them.  `seen` says that there were some; `unclear` that
    such a tensor's memory was handed to numpy, where writes cannot be seen.
    """

    def __init__(self, track: bool = False) -> None:
        super().__init__()
        self.seen = False
        self.unclear = False
        self._track = track

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        first = args[0] if args else None
        if not isinstance(first, torch.Tensor):
            return func(*args, **kwargs)
        if writes(name):
            return self._write(func, first, args, kwargs)
        result = func(*args, **kwargs)
        self._follow(func, name, first, result, args, kwargs)
        return result

    def _write(
        self, func: Callable[..., Any], target: torch.Tensor, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        owner = _owner(target)
        if owner is None and (torch.is_grad_enabled() or not _has_history(target)):
            return func(*args, **kwargs)
        self.seen = True
        if not self._track:
            return func(*args, **kwargs)
        with torch.enable_grad():
            func(target if owner is None else owner, *args[1:], **kwargs)
        return target

    def _follow(
        self,
        func: Callable[..., Any],
        name: str,
        first: torch.Tensor,
        result: Any,
        args: Any,
        kwargs: dict[str, Any],
    ) -> None:
        """Remember of which tensor with a history a result without one is an alias."""
        if name in ("numpy", "__array__", "__dlpack__"):
            self.unclear = self.unclear or _owner(first) is not None
        if not isinstance(result, torch.Tensor) or result is first:
            return
        owner = first if _has_history(first) else _owner(first)
        if owner is None or _has_history(result) or not _shares(first, result):
            return
        if self._track and name != "detach" and func != _DATA:
            with torch.enable_grad():  # the same view of the tensor with the history
                owner = func(owner, *args[1:], **kwargs)
        _set_owner(result, owner)


_DATA: Any = torch.Tensor.data.__get__  # type: ignore[attr-defined]


def writes(name: str) -> bool:
    """Whether a function of this name writes into its first argument."""
    if name in _DUNDERS:
        return True
    return name.endswith("_") and not name.endswith("__") and name not in _NO_WRITES


def _has_history(tensor: torch.Tensor) -> bool:
    return tensor.requires_grad and not tensor.is_leaf


def _shares(first: torch.Tensor, second: torch.Tensor) -> bool:
    try:
        return first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return False


def _owner(tensor: torch.Tensor) -> torch.Tensor | None:
    return getattr(tensor, "_autograd_explain_owner", None)


def _set_owner(tensor: torch.Tensor, owner: torch.Tensor) -> None:
    tensor._autograd_explain_owner = owner  # type: ignore[attr-defined]
