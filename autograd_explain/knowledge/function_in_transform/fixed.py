# %%
import torch
from torch.func import vmap


class Softsign(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x / (1 + x.abs())

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad / (1 + x.abs()) ** 2
# %%
x = torch.linspace(-1, 1, 3, requires_grad=True)
vmap(Softsign.apply)(x).sum().backward()
