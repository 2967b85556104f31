"""Writes that autograd does not see, into tensors that have a history.

After `h.data[done] = 0` the forward pass goes on with the zeroed value, while the gradient still
flows as if nothing had been written.  The gradient of what was computed treats the write as an
operation.  Both readings are run: only where they agree, or for the second one, the reference
says what was meant.

Writes that the second reading cannot follow are noticed by what they leave: a tensor of the graph
whose memory changed although its version did not (`h.data = …`, numpy, a library of C).

A leaf made from a tensor of the graph (`h.detach().requires_grad_()`) lies on the same memory, and
an optimizer writes it at every step.  That is no write into the graph until the graph goes on
with the tensor that was behind the leaf.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from ..custom_function import forward_frames
from .history_mode import HistoryMode
from .reference import same

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


#: What hands numbers out, of which later code may make what it writes.
_NUMBERS = {"item", "tolist", "numpy", "__array__", "__float__", "__dlpack__"}


class UntrackedWrites(HistoryMode):
    """Notices writes to tensors with a history that autograd does not record.

    With `track` it makes autograd record them.  `seen` says that there were some; `unclear` that
    some changed what the graph went on with in a way that cannot be recorded: past torch, or from
    values that were themselves taken from the graph.
    """

    def __init__(self, track: bool = False) -> None:
        super().__init__()
        self.seen = False
        self.unclear = False
        self._track = track
        self._contents = _Contents()
        self._numbers_taken = False
        #: The memory of written leaves that a tensor of the graph may share.
        self._leaves_written: set[StorageWeakRef | None] = set()

    def call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = getattr(func, "__name__", "")
        first = args[0] if args else None
        if writes(name) and isinstance(first, torch.Tensor) and self._is_untracked(first):
            return self._write(func, first, args, kwargs)
        if writes(name):
            self._leaves_written.update(_storage(t) for t in tensors_in((first,)) if _of_leaf(t))
        given = list(tensors_in((*args, *kwargs.values())))
        changed = name != "__get__" and self._contents.changed(given)
        self.unclear = self.unclear or (name != "__get__" and self._behind_a_leaf(given))
        result = func(*args, **kwargs)
        made = self._contents.note(result)
        self.unclear = self.unclear or (changed and made)
        if isinstance(first, torch.Tensor):
            self._follow(func, name, first, result, args, kwargs)
        self._taken(name, given, result)
        return result

    def _is_untracked(self, target: torch.Tensor) -> bool:
        hidden = not torch.is_grad_enabled() and has_history(target)
        # What a custom Function's `forward` writes, its `backward` speaks for.
        hidden = hidden and forward_frames(sys._getframe()) is None
        return hidden or (_owner(target) is not None and not _of_leaf(target))

    def _behind_a_leaf(self, given: Iterable[torch.Tensor]) -> bool:
        """Whether one of these tensors of the graph was written as a leaf of its own."""
        if not self._leaves_written:
            return False
        behind = (t for t in given if has_history(t) and (t._base is None or not _of_leaf(t._base)))
        return any(_storage(t) in self._leaves_written for t in behind)

    def _write(
        self, func: Callable[..., Any], target: torch.Tensor, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        self.seen = True
        sources = (*args[1:], *kwargs.values())
        numbers = self._numbers_taken and any(isinstance(s, float) for s in sources)
        self.unclear = self.unclear or numbers or any(map(_is_taken, tensors_in(sources)))
        self._contents.forget(target)
        if not self._track:
            return func(*args, **kwargs)
        owner = _owner(target)
        sources = tuple(_recorded(s) for s in args[1:])
        with torch.enable_grad():
            func(target if owner is None else owner, *sources, **kwargs)
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
        if not isinstance(result, torch.Tensor) or result is first:
            return
        owner = first if has_history(first) else _owner(first)
        if owner is None or has_history(result) or not _shares(first, result):
            return
        if self._track and name != "detach" and func != _DATA:
            with torch.enable_grad():  # the same view of the tensor with the history
                owner = func(owner, *args[1:], **kwargs)
        _set_owner(result, owner)
        if _of_leaf(first):
            result._autograd_explain_of_leaf = True  # type: ignore[attr-defined]

    def _taken(self, name: str, given: list[torch.Tensor], result: Any) -> None:
        """Remember what was computed from the graph outside of it."""
        if not any(_is_taken(t) or _owner(t) is not None or has_history(t) for t in given):
            return
        self._numbers_taken = self._numbers_taken or name in _NUMBERS
        for made in tensors_in((result,)):
            if made.is_floating_point() and not made.requires_grad and _owner(made) is None:
                made._autograd_explain_taken = True  # type: ignore[attr-defined]


class _Known(NamedTuple):
    tensor: weakref.ref[torch.Tensor]
    version: int
    place: int
    value: torch.Tensor


class _Contents:
    """The values of tensors with a history, as they were when autograd made them."""

    MAX_BYTES = 1 << 26

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}

    def note(self, result: Any) -> bool:
        """Remember what a call made in the graph; whether it made something."""
        made = [t for t in tensors_in((result,)) if has_history(t)]
        for tensor in made:
            if tensor.layout == torch.strided and tensor.nbytes <= self.MAX_BYTES:
                with suppress(RuntimeError):  # inside a transform of torch.func
                    self._known[id(tensor)] = _Known(
                        weakref.ref(tensor),
                        tensor._version,
                        _place(tensor),
                        tensor.detach().clone(),
                    )
        return bool(made)

    def changed(self, given: Iterable[torch.Tensor]) -> bool:
        """Whether one of these was written and no version tells of it."""
        return any([self._changed(t) for t in given if has_history(t)])

    def _changed(self, tensor: torch.Tensor) -> bool:
        known = self._known.get(id(tensor))
        if known is None or known.tensor() is not tensor or known.version != tensor._version:
            self.note(tensor)
            return False
        with suppress(RuntimeError):
            return not same(tensor.detach(), known.value)
        return False

    def forget(self, written: torch.Tensor) -> None:
        """This memory is about to be written in a way that is known."""
        with suppress(RuntimeError, NotImplementedError):
            place = _place(written)
            self._known = {k: v for k, v in self._known.items() if v.place != place}


def _storage(tensor: torch.Tensor) -> StorageWeakRef | None:
    """Equal for tensors on the same memory, and for no later tensor that is given its address;
    None where there is no such memory (sparse, inside a transform of torch.func)."""
    try:
        return StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]
    except (RuntimeError, NotImplementedError):
        return None


def _place(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


_DATA: Any = torch.Tensor.data.__get__  # type: ignore[attr-defined]


def writes(name: str) -> bool:
    """Whether a function of this name writes into its first argument."""
    if name in _DUNDERS:
        return True
    return name.endswith("_") and not name.endswith("__") and name not in _NO_WRITES


def tensors_in(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """The tensors among these, and in their lists and tuples."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from tensors_in(value)


def has_history(tensor: torch.Tensor) -> bool:
    """Whether it was computed from something that requires a gradient."""
    try:
        return tensor.requires_grad and not tensor.is_leaf
    except RuntimeError:  # a view made under no_grad whose base was written since
        return False


def _of_leaf(tensor: torch.Tensor) -> bool:
    """Whether it is a leaf on the memory of a tensor with a history, or an alias of such a leaf."""
    if _owner(tensor) is None or has_history(tensor):
        return False
    return tensor.requires_grad or getattr(tensor, "_autograd_explain_of_leaf", False)


def _is_taken(tensor: torch.Tensor) -> bool:
    return getattr(tensor, "_autograd_explain_taken", False)


def _recorded(value: Any) -> Any:
    """What is an alias of a tensor with a history gives way to that tensor."""
    owner = _owner(value) if isinstance(value, torch.Tensor) else None
    return value if owner is None else owner


def _shares(first: torch.Tensor, second: torch.Tensor) -> bool:
    try:
        return first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return False


def _owner(tensor: torch.Tensor) -> torch.Tensor | None:
    return getattr(tensor, "_autograd_explain_owner", None)


def _set_owner(tensor: torch.Tensor, owner: torch.Tensor) -> None:
    tensor._autograd_explain_owner = owner  # type: ignore[attr-defined]
