# %%
import torch
from torch.func import vmap

torch.manual_seed(0)


def noisy(v):
    return (v + 0.1 * torch.randn_like(v)).sin()
# %%
batch = torch.ones(4, 3, requires_grad=True)
total = vmap(noisy, randomness="different")(batch).sum()
total.backward()
