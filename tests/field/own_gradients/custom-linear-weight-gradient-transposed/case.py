# %%
import torch
import torch.nn as nn


class TernaryLinearFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        scale = weight.abs().mean()
        tern = torch.sign(weight) * (weight.abs() > 0.5 * scale) * scale
        ctx.save_for_backward(x, tern)
        return x @ tern.t() + bias

    @staticmethod
    def backward(ctx, grad_out):
        x, tern = ctx.saved_tensors
        grad_x = grad_out @ tern
        grad_w = x.t() @ grad_out      # straight-through
        grad_b = grad_out.sum(dim=0)
        return grad_x, grad_w, grad_b


class TernaryLinear(nn.Linear):
    def forward(self, x):
        return TernaryLinearFn.apply(x, self.weight, self.bias)
# %%
torch.manual_seed(0)
net = nn.Sequential(TernaryLinear(7, 7), nn.Tanh(), TernaryLinear(7, 4))
x, y = torch.randn(9, 7), torch.randint(0, 4, (9,))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
for _ in range(2):
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
