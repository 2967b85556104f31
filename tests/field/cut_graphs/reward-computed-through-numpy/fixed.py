# %%
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Linear(2, 2)
goal = torch.tensor([1.0, 1.0])

def shaped_reward(pos):
    dist = (pos - goal).norm(dim=1)
    bonus = torch.exp(-dist)
    return bonus - 0.1 * dist
# %%
start = torch.rand(5, 2)
pos = start + policy(start)
loss = -shaped_reward(pos).mean()
loss.backward()
