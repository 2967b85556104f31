# %%
import torch
from torch import nn

net = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2))
# %%
size = sum(p.abs().sum() for p in net.parameters())
print(size)
