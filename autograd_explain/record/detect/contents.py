"""What memory held before a write, kept so that a later look can tell whether it was put back."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..observe.tensor_facts import unseen
from .regions import Region, bytes_of, extent, region_of

#: Memory up to this size is kept whole, of larger a sample: so many rows of so many elements.
_WHOLE = 1024 * 1024
_ROWS, _ROW = 32, 128
#: What adding to numbers and subtracting again leaves, in units of the largest one's last place.
_UNITS = 4.0
_ROUNDED = (torch.float32, torch.float64)
_PLAIN = frozenset({Tensor, torch.nn.Parameter})


@dataclass(frozen=True, eq=False)
class Content:
    """Rows of elements of a storage, beginning at `region.offset`, and what they held.

    `region` is the part of the storage that they stand for, `step` the distance between two rows;
    there is one row where the part was kept whole.
    """

    region: Region
    step: int
    values: Tensor

    @property
    def whole(self) -> bool:
        return self.values.size(0) == 1

    @property
    def bytes(self) -> int:
        return self.values.numel() * self.region.itemsize

    def covers(self, part: Region) -> bool:
        """Whether a part of the storage lies within it."""
        (first, last), (start, end) = extent(part), extent(self.region)
        return part.itemsize == self.region.itemsize and start <= first and last <= end

    def rows_of(self, tensor: Tensor, start: int) -> Tensor:
        """The same rows of the storage that `tensor` has now."""
        return tensor.detach().as_strided(self.values.shape, (self.step, 1), start)


def content_of(tensor: Tensor, region: Region, *, room: bool = True) -> Content | None:
    """What a region of the memory of `tensor` holds; None where that cannot be read.  Where there
    is little `room`, a sample.

    A copy on the tensor's own device: nothing waits for it.
    """
    first, last = extent(region)
    if type(tensor) not in _PLAIN or not is_readable(tensor) or last < first:
        return None
    size = last - first + 1
    if size <= _ROWS * _ROW or (room and is_small(region)):
        shape, step = (1, size), size
    else:
        shape, step = (_ROWS, _ROW), (size - _ROW) // (_ROWS - 1)
    if torch._C._len_torch_dispatch_stack() == 0:
        return Content(region, step, _rows(tensor, shape, step, first))
    with unseen():
        return Content(region, step, _rows(tensor, shape, step, first))


def _rows(tensor: Tensor, shape: tuple[int, int], step: int, first: int) -> Tensor:
    return tensor.detach().as_strided(shape, (step, 1), first).clone()


def is_small(region: Region) -> bool:
    """Whether a region's memory is kept whole."""
    first, last = extent(region)
    return (last - first + 1) * region.itemsize <= _WHOLE


def differs(before: Content, saved: Tensor, *, moved: bool) -> bool | None:
    """Whether `saved` holds other values than it did; None where that cannot be told.

    `moved`: it is the very tensor that was written, which may have other memory by now.
    """
    if type(saved) not in _PLAIN or not is_readable(saved):
        return None
    if saved.dtype != before.values.dtype or saved.device != before.values.device:
        return True if moved else None
    with unseen():
        return _moved(before, saved) if moved else _changed(before, saved)


def _changed(before: Content, saved: Tensor) -> bool:
    """On the same storage: in the part that was saved where all of that is known, else anywhere."""
    part = region_of(saved)
    if before.whole and before.covers(part):
        inside = part.offset - before.region.offset
        old = before.values.view(-1).as_strided(part.sizes, part.strides, inside)
        return not agree(old, saved.detach())
    return not agree(before.values, before.rows_of(saved, before.region.offset))


def _moved(before: Content, saved: Tensor) -> bool | None:
    """On whatever storage the tensor has now."""
    old, now = before.region, region_of(saved)
    if now.sizes != old.sizes:
        return True
    if before.whole:
        return not agree(
            before.values.view(-1).as_strided(old.sizes, old.strides, 0), saved.detach()
        )
    if now.strides != old.strides:
        return None
    return not agree(before.values, before.rows_of(saved, now.offset))


def agree(old: Tensor, new: Tensor) -> bool:
    """Whether values are the same, bit for bit or up to what rounding leaves of a number that was
    added and subtracted again (in float and double; in less one such step is a real change)."""
    # NaN equals itself by its bits.
    if torch.equal(bytes_of(old.contiguous()), bytes_of(new.contiguous())):
        return True
    if old.dtype not in _ROUNDED:
        return False
    scale = old.abs().max().nan_to_num(posinf=0.0)
    rounded = _UNITS * torch.finfo(old.dtype).eps * scale
    same = ((old - new).abs() <= rounded) | (old == new) | (old.isnan() & new.isnan())
    return bool(same.all())


def is_readable(tensor: Tensor) -> bool:
    """Whether a copy can be made now that means something."""
    if tensor.layout is not torch.strided or tensor.device.type == "meta" or tensor.is_quantized:
        return False
    if tensor.is_conj() or tensor.is_neg():
        return False
    return not (tensor.is_cuda and torch.cuda.is_current_stream_capturing())
