# %%
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

def free_run(window, steps):
    preds = []
    for _ in range(steps):
        p = net(window)
        preds.append(p)
        window = torch.cat([window[:, 1:], p], dim=1)
    return torch.cat(preds, dim=1)
# %%
series = torch.sin(torch.arange(0, 6, 0.5)).unfold(0, 7, 1)
loss = (free_run(series[:, :4].clone(), 3) - series[:, 4:]).pow(2).mean()
loss.backward()
