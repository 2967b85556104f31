# %%
import torch


class Project(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight, x.t() @ grad
# %%
torch.manual_seed(0)
x, weight = torch.randn(4, 3), torch.randn(2, 3, requires_grad=True)
loss = Project.apply(x, weight).square().sum()
loss.backward()
print(weight.grad)
