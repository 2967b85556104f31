# %%
import torch
from torch import nn
net = nn.Linear(3, 3)


def augment(x):
    if torch.rand(()).item() < 0.5:
        x = x.flip(0)
    else:
        x = x + 0.1
    return x


# %%
x = torch.rand(4, 3, requires_grad=True)
h = torch.sigmoid(net(augment(x)))  # saved
h[:, 0] = 1.0  # wrote
h.mean().backward()
