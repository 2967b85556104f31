# %%
import torch
import torch.nn as nn


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        s = torch.sigmoid(x)
        ctx.save_for_backward(x)
        return x * s

    @staticmethod
    def backward(ctx, grad_out):
        x, = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_out * (s + x * s * (1 - s))


swish = Swish.apply
# %%
torch.manual_seed(0)
lin = nn.Linear(4, 4)
inp = torch.randn(6, 4)
h = lin(inp)
act = swish(h)
gate = h.div(4).tanh()
loss = (act * gate).sum()
# %%
loss.backward()
