# %%
import numpy as np
import torch

torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
# a search direction that was computed elsewhere
direction = np.full((1, 3), 0.5)
net.weight.grad = torch.from_numpy(direction).to(net.weight.dtype)
optimizer.step()
print(net.weight)
