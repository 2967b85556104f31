# %%
import torch
from torch.utils.checkpoint import checkpoint

state = {"step": 0}


def mix(x):
    state["step"] += 1
    h = x.sin()
    return h.cos() if state["step"] % 2 else h
# %%
x = torch.ones(3, requires_grad=True)
y = checkpoint(mix, x, use_reentrant=False)
y.exp().sum().backward()
