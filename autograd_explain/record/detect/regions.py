"""Which elements of a storage a tensor covers, and what they hold."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..observe.tensor_facts import unseen

#: Tensors up to this size are read whole, larger ones in samples of this size.
_WHOLE = 64 * 1024
_ROWS, _ROW = 64, 1024
#: Elements up to which an overlap is decided exactly.
_EXACT = 1_000_000


class Region(NamedTuple):
    """Offset, sizes and strides in elements; bytes per element."""

    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @property
    def view(self) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """As `as_strided` takes it."""
        return self.sizes, self.strides, self.offset


def region_of(tensor: Tensor) -> Region:
    return Region(
        int(tensor.storage_offset()), tuple(tensor.size()), tuple(tensor.stride()), tensor.itemsize
    )


def written_region(target: Tensor, args: tuple[Any, ...]) -> Region:
    """What an in-place operation wrote: for `target[index] = v` with plain indices that part."""
    if len(args) == 3 and _is_plain(args[1]):
        try:
            with unseen():
                return region_of(target[args[1]])
        except (IndexError, TypeError, RuntimeError):
            pass
    return region_of(target)


def _is_plain(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return all(p is None or p is ... or isinstance(p, (int, slice)) for p in parts)


def overlap(a: Region | None, b: Region | None) -> bool:
    """Whether two regions of one storage share an element; True where that is not known."""
    if a is None or b is None or a.itemsize != b.itemsize:
        return True
    first_a, last_a = extent(a)
    first_b, last_b = extent(b)
    if last_a < first_b or last_b < first_a:
        return False
    if max(last_a, last_b) - min(first_a, first_b) > _EXACT:
        return True
    start = min(first_a, first_b)
    with unseen():
        mask = torch.zeros(max(last_a, last_b) - start + 1, dtype=torch.bool, device="cpu")
        mask.as_strided(a.sizes, a.strides, a.offset - start).fill_(True)
        return bool(mask.as_strided(b.sizes, b.strides, b.offset - start).any())


def extent(region: Region) -> tuple[int, int]:
    """First and last element; an empty region ends before it begins."""
    if 0 in region.sizes:
        return region.offset, region.offset - 1
    reach = sum((n - 1) * s for n, s in zip(region.sizes, region.strides, strict=True))
    return region.offset, region.offset + reach


def bytes_of(tensor: Tensor) -> Tensor:
    """The bytes of a contiguous tensor (one of a single element may have any stride)."""
    flat = tensor.as_strided((tensor.numel(),), (1,), tensor.storage_offset())
    return flat.view(torch.uint8)


def checksum(tensor: Tensor) -> int:
    """A number that changes when the values change; large tensors are sampled."""
    with unseen():
        flat = tensor.detach()
        if not flat.is_contiguous():
            steps = tuple(slice(None, None, max(1, n // 32)) for n in flat.shape)
            flat = flat[steps].contiguous()
        data = bytes_of(flat).numpy()
    if data.nbytes > _WHOLE:
        step = data.nbytes // _ROWS
        data = data[: step * _ROWS].reshape(_ROWS, step)[:, :_ROW].copy()
    return zlib.crc32(data.data)
