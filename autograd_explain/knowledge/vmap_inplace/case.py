# %%
import torch
from torch.func import vmap


def shifted(row):
    return torch.ones(2).mul_(row).cumsum(0)
# %%
rows = torch.arange(6.0).reshape(3, 2)
sums = vmap(shifted)(rows)
