# %%
import torch


class Snap(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()
# %%
code = torch.tensor([0.2, 1.7], requires_grad=True)
loss = (Snap.apply(code) - 1).square().sum()
loss.backward()
