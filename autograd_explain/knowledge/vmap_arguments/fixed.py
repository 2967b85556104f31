# %%
import torch
from torch.func import vmap


def scaled(row, factor):
    return (row * factor).tanh()
# %%
table = torch.ones(4, 3, requires_grad=True)
result = vmap(scaled, in_dims=(0, None))(table, 0.5)
result.sum().backward()
