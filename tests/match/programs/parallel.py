"""DistributedDataParallel with one process over gloo."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from . import NOT_HERE, prints, raises, warns

#: The groups that were made.  A reducer that is the last to hold one joins gloo's threads while it
#: has the interpreter's lock, which a thread that lets go of a Python object waits for (torch 2.13,
#: c10d/reducer.cpp: unlike ProcessGroup's, its binding does not give the lock away).
_GROUPS: list[dist.ProcessGroup | None] = []


@contextmanager
def group() -> Iterator[None]:
    """A process group of this process alone."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    _GROUPS.append(dist.group.WORLD)
    try:
        yield
    finally:
        dist.destroy_process_group()


class Two(nn.Module):
    """Two layers, of which forward uses those asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x: torch.Tensor, *names: str) -> Any:
        for name in names:
            x = getattr(self, name)(x)
        return x


def train(*rounds: tuple[str, ...], **options: Any) -> None:
    with group():
        model = DistributedDataParallel(Two(), **options)
        for names in rounds:
            model(torch.ones(2), *names).sum().backward()


@raises("ddp-prior-iteration-unused", rank="0", indices="2 3")
def unused() -> None:
    train(("a",), ("a",))


@raises("ddp-prior-iteration-unused-debug", parameters="b.bias, b.weight", indices="2 3")
def unused_debug() -> None:
    dist.set_debug_level(dist.DebugLevel.INFO)
    try:
        train(("a",), ("a",))
    finally:
        dist.set_debug_level(dist.DebugLevel.OFF)


@dataclass
class Outputs:
    """What forward gives back: DDP finds the tensors in it, and cannot watch their use."""

    a: torch.Tensor
    b: torch.Tensor


@prints("ddp-find-unused-but-none")
def no_unused() -> None:
    train(("a", "b"), ("a", "b"), find_unused_parameters=True)


@raises("ddp-prior-iteration-outputs", rank="0", indices="2 3")
def outputs() -> None:
    class Net(Two):
        def forward(self, x: torch.Tensor, *names: str) -> Any:
            return Outputs(self.a(x), self.b(x))

    with group():
        model = DistributedDataParallel(Net(), find_unused_parameters=True)
        for _ in range(2):
            model(torch.ones(2)).a.sum().backward()


@raises("ddp-marked-ready-twice", index="1", parameter="a.bias")
def ready_twice() -> None:
    class Net(Two):
        def forward(self, x: torch.Tensor, *names: str) -> Any:
            x = checkpoint(self.a, x, use_reentrant=True)
            return self.b(checkpoint(self.a, x, use_reentrant=True))

    with group():
        model = DistributedDataParallel(Net(), find_unused_parameters=True)
        model(torch.ones(2, requires_grad=True)).sum().backward()


@raises("ddp-static-graph-changed")
def static_changed() -> None:
    train(("a", "b"), ("a",), ("a",), static_graph=True)


@raises("ddp-static-graph-unused-then-used")
def static_unused_then_used() -> None:
    train(("a",), ("a", "b"), ("a", "b"), static_graph=True)


@warns("ddp-bucket-view-strides", shape="[2, 2]")
def strides() -> None:
    with group():
        model = DistributedDataParallel(Two(), gradient_as_bucket_view=True)
        weight = model.module.a.weight
        weight.data = weight.data.t().contiguous().t()
        model(torch.ones(2), "a", "b").sum().backward()


@raises("ddp-no-parameter-requires-grad")
def frozen() -> None:
    with group():
        DistributedDataParallel(nn.ReLU())


@raises("ddp-no-process-group")
def no_group() -> None:
    DistributedDataParallel(Two())


@raises("ddp-device-ids", device_ids="[0]", output_device="None")
def device_ids() -> None:
    with group():
        DistributedDataParallel(Two(), device_ids=[0])


@raises("ddp-syncbn-cpu")
def sync_batch_norm() -> None:
    with group():
        DistributedDataParallel(nn.Sequential(nn.SyncBatchNorm(2)))


NOT_HERE["dataparallel-gather-scalars"] = "gather refuses CPU tensors"
