# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters())
data = torch.randn(200, 4)
for epoch in range(20):
    for xb in data.split(20):
        loss = net(xb).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
# %%
def smooth(y):
    z = y.cumsum(0).exp()  # saved
    z[1:] -= z[:-1].clone()  # wrote
    return z
# %%
for epoch in range(100):
    y = net(data[:6])
    if epoch < 30:
        loss = y.pow(2).mean()
    else:
        loss = smooth(y).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
