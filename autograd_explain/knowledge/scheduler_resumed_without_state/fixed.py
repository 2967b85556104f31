# %%
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
start = 5
# %%
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for group in optimizer.param_groups:
    group.setdefault("initial_lr", group["lr"])
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5, last_epoch=start)
# %%
loss = net(torch.ones(2, 3)).square().mean()
loss.backward()
optimizer.step()
scheduler.step()
print(scheduler.get_last_lr())
