# %%
import torch
from torch.utils.checkpoint import checkpoint

state = {"step": 0}


def mix(x, step):
    h = x.sin()
    return h.cos() if step % 2 else h
# %%
x = torch.ones(3, requires_grad=True)
state["step"] += 1
y = checkpoint(mix, x, state["step"], use_reentrant=False)
y.exp().sum().backward()
