# %%
import torch
from torch import nn

torch.manual_seed(0)
project = nn.Linear(3, 8)


def gated(x):
    projected = project(x)
    value, gate = projected.chunk(2, dim=1)
    gate.sigmoid_()
    return value * gate
# %%
out = gated(torch.randn(5, 3))
out.sum().backward()
