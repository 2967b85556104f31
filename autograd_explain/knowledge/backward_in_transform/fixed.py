# %%
import torch
from torch.func import vmap

gravity = torch.tensor(9.81, requires_grad=True)


def speed(t):
    height = 2.0 - 0.5 * gravity * t**2
    def height_of_t(t):
        height = 2.0 - 0.5 * gravity * t**2
        return height.sum()
    return torch.func.grad(height_of_t)(t)
# %%
fall = vmap(speed)(torch.linspace(0, 1, 4))
fall.square().sum().backward()
