# %%
import torch
from torch.func import vmap

trace = []


def layer(v):
    trace.append(v)
    return v.tanh()
# %%
out = vmap(layer)(torch.ones(3))
first = trace[0] + 1
