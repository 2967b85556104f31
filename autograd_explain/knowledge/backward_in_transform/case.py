# %%
import torch
from torch.func import grad


def energy(v):
    out = v.pow(3).sum()
    out.backward()
    return out
# %%
slope = grad(energy)(torch.ones(3))
