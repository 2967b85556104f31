"""Values that left torch, by content: how a trace goes on through Python numbers and numpy."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor

from ..observe.tensor_facts import is_plain, unseen
from .regions import checksum

MAX_VALUES = 10_000
_MAX_NUMBERS = 64
_MAX_REMEMBERED = 500
_NOTHING: frozenset[int] = frozenset()


class Values:
    """Which cuts a number or an array came from.

    Only what Python, numpy or the CPU's memory holds is read: nothing waits for a device.
    """

    def __init__(self) -> None:
        self._numbers: dict[float, frozenset[int]] = {}
        self._arrays: dict[tuple[int, int], frozenset[int]] = {}

    def remember(self, values: Any, sites: frozenset[int]) -> None:
        """`values` left torch at `sites`: a number, a list, or a tensor that goes to numpy."""
        if type(values) is float:
            self._remember_number(values, sites)
            return
        with unseen():
            read = _read(values)
            if read is None:
                return
            if read.numel() == 1:
                self._remember_number(read.item(), sites)
                return
            self._arrays[_content(read)] = sites
        while len(self._arrays) > _MAX_REMEMBERED:
            del self._arrays[next(iter(self._arrays))]

    def _remember_number(self, number: float, sites: frozenset[int]) -> None:
        numbers = self._numbers
        if number != 0.0 and number != 1.0:
            numbers[number] = sites
            if len(numbers) > _MAX_REMEMBERED:
                del numbers[next(iter(numbers))]

    def recall(self, tensor: Tensor, given: Any) -> frozenset[int]:
        """The cuts whose values a tensor that was made from `given` holds: all of an array's, or
        numbers only."""
        if not (self._numbers or self._arrays) or not tensor.is_floating_point():
            return _NOTHING
        if not 0 < tensor.numel() <= MAX_VALUES:
            return _NOTHING
        with unseen():
            read = _read(tensor if tensor.device.type == "cpu" else given)
            if read is None:
                return _NOTHING
            found = self._arrays.get(_content(read))
            if found is None and self._numbers and read.numel() <= _MAX_NUMBERS:
                known = [self._numbers.get(v) for v in read.tolist()]
                found = None if None in known else frozenset[int]().union(*filter(None, known))
        return _NOTHING if found is None else found


def _content(read: Tensor) -> tuple[int, int]:
    return read.numel(), checksum(read)


def _read(values: Any) -> Tensor | None:
    """Values as a row of float64 in the CPU's memory; None where they are no such values."""
    if isinstance(values, Tensor):
        readable = is_plain(values) and values.device.type == "cpu"
    else:
        readable = _is_array(values) or isinstance(_first(values), float)
    if not readable:
        return None
    try:
        row = torch.as_tensor(values, device="cpu").detach().double().flatten()
    except (TypeError, ValueError, RuntimeError):  # ragged, or of a type that torch has not
        return None
    return row if 0 < row.numel() <= MAX_VALUES else None


def _first(values: Any) -> Any:
    while isinstance(values, (list, tuple)) and values:
        values = values[0]
    return values


def _is_array(values: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(values, numpy.ndarray)
