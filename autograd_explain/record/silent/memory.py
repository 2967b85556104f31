"""Memory of a tensor that numpy can write, watched for as long as anybody else has it."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor
from torch._C._autograd import _get_sequence_nr as sequence

from ..tensors import storage
from .regions import Region, checksum, region_of
from .suspect import Mark, Weak

# Private, but in every torch from 2.3 on; without it only the user's own tensor is watched.
_use_count = getattr(torch._C, "_storage_Use_Count", None)


@dataclass
class Memory:
    """A tensor on memory that numpy can write, and what it held when last looked at.

    `scores.detach().numpy()` leaves no tensor behind, while the graph keeps the memory: `kept` is
    an alias of ours for that case.  Whoever finds that nobody else has the memory lets go of it.
    """

    tensor: Weak
    kept: Tensor | None
    storage: int
    region: Region
    sum: int
    mark: Mark
    nodes: int
    shared: Mark | None = None  #: the call that gave it to numpy, where that was seen

    @classmethod
    def of(cls, tensor: Tensor, mark: Mark, shared: Mark | None) -> Memory:
        kept = None if _use_count is None else tensor.detach()
        watched = weakref.ref(tensor if kept is None else kept)
        numbers = storage(tensor), region_of(tensor), checksum(tensor), mark, sequence()
        return cls(watched, kept, *numbers, shared)

    def is_ours_alone(self) -> bool:
        """Whether the user's arrays, tensors and graphs have all let go of the memory."""
        if self.kept is None or _use_count is None:
            return False
        return bool(_use_count(storage(self.kept)) <= _alone())


@cache
def _alone() -> int:
    """The count of a storage that one tensor holds (its Python object may count as well)."""
    assert _use_count is not None
    tensor = torch.empty(1, device="cpu")
    return int(_use_count(storage(tensor)))
