# %%
import torch


class Shrink(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, amount):
        ctx.save_for_backward(x, amount)
        return x.sign() * (x.abs() - amount).clamp(min=0)

    @staticmethod
    def backward(ctx, grad):
        x, amount = ctx.saved_tensors
        return grad * (x.abs() > amount), None
# %%
x = torch.tensor([-2.0, 0.1, 3.0], requires_grad=True)
Shrink.apply(x, 0.5).sum().backward()
