# %%
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(5, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
x = torch.randn(8, 5)
y = torch.randint(0, 3, (8,))
# %%
optimizer.zero_grad()
loss = nn.functional.cross_entropy(net(x), y, reduction="none")
loss.backward()
optimizer.step()
