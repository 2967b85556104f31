# %%
import torch
from torch import nn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
D = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
opt_g = torch.optim.SGD(G.parameters(), lr=0.1)
opt_d = torch.optim.SGD(D.parameters(), lr=0.1)
# %%
for step in range(4):
    real, z = torch.randn(16, 2) + 3, torch.randn(16, 4)
    opt_d.zero_grad()
    loss_d = D(G(z)).mean() - D(real).mean()
    loss_d.backward()
    opt_d.step()

    D.requires_grad_(False)
    opt_g.zero_grad()
    loss_g = -D(G(z)).mean()
    loss_g.backward()
    opt_g.step()
