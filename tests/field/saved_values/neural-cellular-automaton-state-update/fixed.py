# %%
import torch
from torch import nn


class CellularAutomaton:
    def __init__(self, channels=3, size=6):
        self.rule = nn.Sequential(nn.Conv2d(channels, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, channels, 1))
        self.grid = torch.zeros(1, channels, size, size)
        self.grid[..., size // 2, size // 2] = 1.0

    def tick(self, rate=0.5):
        update = self.rule(self.grid)
        self.grid = self.grid.add(update, alpha=rate)

    def run(self, n):
        for _ in range(n):
            self.tick()
        return self.grid
# %%
torch.manual_seed(0)
ca = CellularAutomaton()
goal = torch.zeros(1, 3, 6, 6)
goal[:, 0, 1:-1, 1:-1] = 1.0
# %%
loss = (ca.run(3) - goal).pow(2).mean()
loss.backward()
print(loss.item())
