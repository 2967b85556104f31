# %%
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
if dist.is_initialized():
    dist.destroy_process_group()
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


class Unrolled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.out = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

    def forward(self, x):
        for _ in range(2):
            x = checkpoint(self.mix, x, use_reentrant=True)
        return self.out(x)
# %%
model = DistributedDataParallel(Unrolled(), find_unused_parameters=True)
x = torch.randn(4, 3, requires_grad=True)
model(x).square().mean().backward()
