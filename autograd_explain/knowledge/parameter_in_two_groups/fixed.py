# %%
from collections import OrderedDict

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(OrderedDict(body=nn.Linear(5, 3), head=nn.Linear(3, 1)))
# %%
optimizer = torch.optim.SGD([
    {"params": [p for n, p in net.named_parameters() if not n.startswith("head.")], "lr": 0.001},
    {"params": net.head.parameters(), "lr": 0.1},
])
# %%
loss = net(torch.randn(4, 5)).square().mean()
loss.backward()
optimizer.step()
