# %%
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)


class Run:
    def __init__(self):
        self.net = nn.Linear(2, 1)
        self.curve = []

    def step(self, x, y):
        error = (self.net(x) - y).square().mean()
        self.net.zero_grad()
        error.backward()
        self.curve.append(error)
# %%
run = Run()
for _ in range(3):
    run.step(torch.randn(5, 2), torch.randn(5, 1))
# %%
curve = np.asarray(run.curve)
print(curve.mean())
