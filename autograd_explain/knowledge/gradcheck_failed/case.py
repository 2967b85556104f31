# %%
import torch


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.sigmoid()
# %%
x = torch.linspace(-1, 1, 3, dtype=torch.float64, requires_grad=True)
torch.autograd.gradcheck(Swish.apply, x)
