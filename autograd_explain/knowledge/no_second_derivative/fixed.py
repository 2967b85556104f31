# %%
import torch
from torch.autograd.function import once_differentiable


class Bend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.tanh()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (1 - x.tanh() ** 2)
# %%
x = torch.linspace(-1, 1, 4, requires_grad=True)
(slope,) = torch.autograd.grad(Bend.apply(x).square().sum(), x, create_graph=True)
slope.square().sum().backward()
