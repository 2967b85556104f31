# %%
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

torch.manual_seed(0)
if dist.is_initialized():
    dist.destroy_process_group()
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.main, self.spare = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.main(x)
# %%
model = DistributedDataParallel(Net())
for batch in torch.randn(2, 4, 3):
    model(batch).square().mean().backward()
