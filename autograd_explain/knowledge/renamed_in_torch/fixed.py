# %%
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
for step in range(2):
    optimizer.zero_grad()
    net(torch.ones(3, 4)).square().mean().backward()
    nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)
    optimizer.step()
