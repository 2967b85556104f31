"""One of two processes whose models differ: `two_ranks.py RANK STORE`.

Prints what DDP says, a line each: first of another number of layers, which both ranks notice,
then of layers of other sizes.  Only rank 1 notices those; rank 0 goes on to send its parameters
and would wait for ever, so rank 1 leaves at once, which ends rank 0's wait with an error.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def say(model: nn.Module) -> None:
    try:
        DistributedDataParallel(model)
    except RuntimeError as error:
        print("RuntimeError:", " ".join(str(error).split()), flush=True)


if __name__ == "__main__":
    # The interface of the host name may not lead anywhere on a machine without a network.
    os.environ["GLOO_SOCKET_IFNAME"] = "lo0" if sys.platform == "darwin" else "lo"
    torch.set_num_threads(1)
    rank, path = int(sys.argv[1]), sys.argv[2]
    store = dist.FileStore(path, 2)
    limit = timedelta(seconds=20)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=limit)
    say(nn.Sequential(*(nn.Linear(2, 2) for _ in range(1 + rank))))
    say(nn.Linear(2, 2 + rank))
    os._exit(0)
