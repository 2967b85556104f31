# %%
import torch
from torch import nn

torch.manual_seed(0)


class Stack(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(depth)])

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x
# %%
net = Stack(depth=3)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
# %%
loss = net(torch.randn(5, 4)).square().mean()
loss.backward()
optimizer.step()
