# %%
import torch
from torch import nn

torch.manual_seed(0)
cell, head = nn.RNNCell(2, 4), nn.Linear(4, 1)
series = torch.randn(3, 5, 2)
hidden = torch.zeros(5, 4)
# %%
for x in series:
    hidden = cell(x, hidden)
    loss = head(hidden).square().mean()
    loss.backward()
    hidden = hidden.detach()
