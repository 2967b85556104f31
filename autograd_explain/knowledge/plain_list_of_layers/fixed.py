# %%
import torch
from torch import nn

torch.manual_seed(0)


class Tower(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.head(x).squeeze(1)
# %%
tower = Tower(4, 2)
optimizer = torch.optim.Adam(tower.parameters(), lr=0.01)
x, y = torch.randn(16, 4), torch.randn(16)
# %%
for epoch in range(3):
    optimizer.zero_grad()
    loss = (tower(x) - y).pow(2).mean()
    loss.backward()
    optimizer.step()
