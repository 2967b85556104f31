# %%
import torch
from torch.func import vmap

gravity = torch.tensor(9.81, requires_grad=True)


def speed(t):
    height = 2.0 - 0.5 * gravity * t**2
    return torch.autograd.grad(height, t, create_graph=True)[0]
# %%
fall = vmap(speed)(torch.linspace(0, 1, 4))
fall.square().sum().backward()
