# %%
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 2)
arr = np.random.default_rng(0).normal(2.0, 3.0, size=(8, 3)).astype(np.float32)

def standardize(a):
    a -= a.mean(0)
    a /= a.std(0)
    return a
# %%
x = torch.from_numpy(arr)
loss = net(x).pow(2).mean()
arr_std = standardize(arr)
loss.backward()
print(arr_std.std())
