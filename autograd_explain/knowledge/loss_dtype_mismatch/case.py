# %%
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(2, 1)
x = torch.randn(8, 2)
# %%
targets = torch.from_numpy(np.linspace(0, 1, 8))
# NumPy computes in double precision, torch in single
loss = nn.functional.huber_loss(net(x).squeeze(1), targets)
loss.backward()
print(net.weight.grad)
