# %%
import torch


def scale(grad):
    return grad / grad.norm() if grad.dim() > 1 else grad.norm()
# %%
w = torch.ones(3, requires_grad=True)
w.register_hook(scale)
(2 * w).sum().backward()
