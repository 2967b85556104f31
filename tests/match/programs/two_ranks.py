"""One of two processes whose models differ: `two_ranks.py RANK STORE`.

Prints what DDP says, a line each: first of layers of other sizes, then of another number of them.
"""

from __future__ import annotations

import sys

import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def say(model: nn.Module) -> None:
    try:
        DistributedDataParallel(model)
    except RuntimeError as error:
        print("RuntimeError:", " ".join(str(error).split()), flush=True)


if __name__ == "__main__":
    rank, path = int(sys.argv[1]), sys.argv[2]
    dist.init_process_group("gloo", store=dist.FileStore(path, 2), rank=rank, world_size=2)
    say(nn.Linear(2, 2 + rank))
    say(nn.Sequential(*(nn.Linear(2, 2) for _ in range(1 + rank))))
    dist.destroy_process_group()
