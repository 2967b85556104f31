# %%
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
loss = net(torch.ones(2, 3)).square().mean()
loss.backward()
optimizer.step()
scheduler.step()
