# %%
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader


class Pairs(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(0)
        self.x = torch.rand(n, 5, generator=g)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "y": self.x[i].sum()}


# %%
model = nn.Sequential(nn.Linear(5, 5), nn.Sigmoid())
loader = DataLoader(Pairs(20), batch_size=4)
for batch in loader:
    out = model(batch["x"])  # saved
    out[out < 0.5] = 0  # wrote
    loss = (out.sum(1) - batch["y"]).abs().mean()
    loss.backward()
