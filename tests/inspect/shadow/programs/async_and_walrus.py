# %%
import torch
from torch import nn
net = nn.Linear(2, 2)


def steps():
    n = 0
    while (n := n + 1) <= 3:
        yield n


# %%
acc = torch.zeros(2)
parts = []
for n in steps():
    parts.append((net(torch.ones(2)) * acc).sum())  # saved
    acc += n  # wrote
sum(parts).backward()
