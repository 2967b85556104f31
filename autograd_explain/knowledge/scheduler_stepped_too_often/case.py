# %%
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
batches = [torch.randn(4, 3) for _ in range(3)]
# %%
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=2 * len(batches))
for epoch in range(2):
    for batch in batches:
        optimizer.zero_grad()
        net(batch).square().mean().backward()
        optimizer.step()
        scheduler.step()
    scheduler.step()
