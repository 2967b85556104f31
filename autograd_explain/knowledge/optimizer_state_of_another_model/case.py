# %%
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.001)
# %%
checkpoint = {"net": net.state_dict(), "optimizer": optimizer.state_dict()}
# %%
optimizer = torch.optim.Adam(net[2].parameters(), lr=0.001)
optimizer.load_state_dict(checkpoint["optimizer"])
