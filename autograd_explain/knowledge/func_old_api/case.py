# %%
import functorch
import torch


def weighted(row):
    return (row * torch.arange(3.0)).sum()
# %%
rows = torch.ones(2, 3, requires_grad=True)
per_row = functorch.vmap(weighted)
per_row(rows).sum().backward()
