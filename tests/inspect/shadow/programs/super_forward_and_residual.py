# %%
import torch
from torch import nn
torch.manual_seed(0)


class Base(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        self.act = nn.Tanh()

    def forward(self, x):
        return self.act(self.lin(x))  # saved


class Residual(Base):
    def __init__(self, n, scale):
        super().__init__(n)
        self.scale = scale

    def forward(self, x):
        y = super().forward(x)
        y += self.scale * x  # wrote
        return y


# %%
net = nn.Sequential(Residual(4, 0.5), Residual(4, 0.25))
net(torch.randn(2, 4)).sum().backward()
