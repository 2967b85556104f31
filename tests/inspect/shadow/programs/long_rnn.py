# %%
import torch
from torch import nn
torch.manual_seed(0)
cell = nn.RNNCell(3, 5)
x = torch.randn(1500, 2, 3)
# %%
h = torch.zeros(2, 5)
states = torch.zeros(1500, 2, 5)
total = torch.zeros(2, 5)
for t in range(1500):
    h = cell(x[t], h)
    total += torch.exp(total * 1e-3) * h  # wrote
    states[t] = h * total  # saved
loss = states.mean()
loss.backward()
