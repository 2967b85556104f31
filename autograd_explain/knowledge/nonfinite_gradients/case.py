# %%
import torch
from torch import nn

net = nn.Linear(2, 1, bias=False)
nn.init.zeros_(net.weight)
# %%
loss = net(torch.ones(3, 2)).sqrt().sum()
loss.backward()
nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0, error_if_nonfinite=True)
