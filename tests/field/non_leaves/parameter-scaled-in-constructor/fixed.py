# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class ScaledPReLU(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        self.alpha = nn.Parameter(torch.ones(n) * 0.1)

    def forward(self, x):
        h = self.lin(x)
        return torch.where(h > 0, h, self.alpha * h)

    def slope_grad(self):
        return self.alpha.grad
# %%
layer = ScaledPReLU(4)
x = torch.randn(6, 4)
layer(x).pow(2).sum().backward()
# %%
g = layer.slope_grad()
print("slope gradient:", g)
