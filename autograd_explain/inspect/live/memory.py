"""Who shares memory with a tensor, and who of these its version counter.

A view has its base's counter, what `.detach()` gives has it too; `.data` gives a counter of its
own, and a NumPy array has none: what is written there no backward notices.  torch tells neither
which counter a tensor has nor where it is (2.13), and trying it out would be a write.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from .names import Names, storage_key

#: Whether two tensors that share memory share the counter; None where that is not known.
SameCounter: TypeAlias = Callable[[torch.Tensor, torch.Tensor], "bool | None"]


@dataclass(frozen=True)
class Sharer:
    """A tensor or an array in a memory, by its names.

    `counter` numbers the version counters of the memory, None where it is not known which; of an
    array, which has none, `version` is None too.  `view_of` are its base's names.
    """

    names: tuple[str, ...]
    counter: int | None
    version: int | None
    is_array: bool = False
    view_of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Memory:
    """A storage with two or more that look at it; `inferred`: so are some of its counters."""

    sharers: tuple[Sharer, ...]
    bytes: int
    inferred: bool = False


def memories(
    tensors: Iterable[torch.Tensor], names: Names, same_counter: SameCounter
) -> tuple[Memory, ...]:
    """The memory behind these tensors, where others share it."""
    wanted = {key: t for t in tensors if (key := storage_key(t)) is not None}
    found = (_memory(key, tensor, names, same_counter) for key, tensor in wanted.items())
    return tuple(memory for memory in found if len(memory.sharers) > 1)


def _memory(key: int, tensor: torch.Tensor, names: Names, same: SameCounter) -> Memory:
    called: dict[int, tuple[torch.Tensor, list[str]]] = {id(tensor): (tensor, [])}
    for named in names.tensors:
        if storage_key(named.tensor) == key:
            called.setdefault(id(named.tensor), (named.tensor, []))[1].append(named.name)
    counters = _Counters(same)
    sharers = [_sharer(t, tuple(own), names, counters) for t, own in called.values()]
    sharers = [s for s in sharers if s.names]
    arrays = tuple(Sharer((n,), None, None, True) for n in _arrays(tensor, names))
    size = int(tensor.untyped_storage().nbytes())
    return Memory((*sorted(sharers, key=_by_counter), *arrays), size, counters.asked)


def _by_counter(sharer: Sharer) -> int:
    return 1_000 if sharer.counter is None else sharer.counter


def _sharer(
    tensor: torch.Tensor, own: tuple[str, ...], names: Names, counters: _Counters
) -> Sharer:
    version = None if tensor.is_inference() else tensor._version
    counter = None if version is None else counters.of(tensor)
    base = tensor._base
    view_of = () if base is None else tuple(n.name for n in names.tensors if n.tensor is base)
    return Sharer(own, counter, version, view_of=view_of)


class _Counters:
    """Numbers the version counters of one memory."""

    def __init__(self, same: SameCounter) -> None:
        self._same = same
        self._first: list[torch.Tensor] = []  #: of each counter, a tensor that has it
        self.asked = False

    def of(self, tensor: torch.Tensor) -> int | None:
        unknown = False
        for number, other in enumerate(self._first):
            same = self._is_same(tensor, other)
            if same:
                return number
            unknown = unknown or same is None
        if unknown:
            return None
        self._first.append(tensor)
        return len(self._first) - 1

    def _is_same(self, one: torch.Tensor, other: torch.Tensor) -> bool | None:
        if one._version != other._version:
            return False
        if _origin(one) is _origin(other):
            return True
        self.asked = True
        return self._same(one, other)


def _origin(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor._base is None else tensor._base


def _arrays(tensor: torch.Tensor, names: Names) -> Iterator[str]:
    """The arrays whose first element lies in a tensor's memory."""
    if tensor.device.type != "cpu" or not names.arrays:
        return
    try:
        storage: Any = tensor.untyped_storage()
        # Not `data_ptr()`, which would make memory that is copied when written a copy now.
        address: Any = vars(torch._C)["_data_address"]
        start = address(tensor) - tensor.storage_offset() * tensor.element_size()
        end = start + storage.nbytes()
    except Exception:
        return
    interface: Any = sys.modules["numpy"].ndarray.__array_interface__  # a subclass's may be another
    for name, array in names.arrays:
        if start <= interface.__get__(array)["data"][0] < end:
            yield name
