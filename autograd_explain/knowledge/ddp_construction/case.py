# %%
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

if dist.is_initialized():
    dist.destroy_process_group()
net = torch.nn.Linear(3, 1)
# %%
model = DistributedDataParallel(net)
model(torch.ones(2, 3)).sum().backward()
