"""Memory of a tensor that numpy can write, watched for as long as anybody else has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._C._autograd import _get_sequence_nr as sequence
from torch.multiprocessing.reductions import StorageWeakRef

from ..observe.tensor_facts import storage, unseen
from .contents import Content, content_of, is_small
from .finding import Mark
from .regions import Region, checksum, region_of


@dataclass
class Memory:
    """Memory that numpy can write, and what it held when last looked at.

    It is held weakly: it may outlive every tensor of the program's (`scores.detach().numpy()`
    leaves the array and the graph) and goes when the last of them goes.
    """

    weak: Any  #: a StorageWeakRef
    storage: int
    dtype: torch.dtype
    region: Region
    sum: int
    mark: Mark
    nodes: int
    shared: Mark | None = None  #: the call that gave it to numpy, where that was seen
    held: Content | None = None  #: what it held, where that is small

    @classmethod
    def of(cls, tensor: Tensor, mark: Mark, shared: Mark | None) -> Memory:
        weak: Any = StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]
        numbers = region_of(tensor), checksum(tensor), mark, sequence()
        held = _small_content(tensor)
        return cls(weak, storage(tensor), tensor.dtype, *numbers, shared, held)

    def alias(self) -> Tensor | None:
        """A tensor of ours on the memory; None where nobody has it any more."""
        with unseen():
            kept = torch.UntypedStorage._new_with_weak_ptr(self.weak.cdata)
            if kept is None:
                return None
            alias = torch.empty(0, dtype=self.dtype, device=kept.device)
            alias.set_(kept, *self.region[:3])
            return alias

    def is_gone(self) -> bool:
        """Whether the program's arrays, tensors and graphs have all let go of it."""
        return bool(self.weak.expired())

    @property
    def before(self) -> Content | int:
        """What it held when last looked at."""
        return self.sum if self.held is None else self.held

    def looked(self, tensor: Tensor, now: int, mark: Mark) -> None:
        """It holds what has this checksum."""
        if now != self.sum:
            self.held = _small_content(tensor)
        self.sum, self.mark, self.nodes = now, mark, sequence()


def _small_content(tensor: Tensor) -> Content | None:
    region = region_of(tensor)
    return content_of(tensor, region) if is_small(region) else None
