# %%
import torch
import torch.nn as nn

torch.manual_seed(0)
net = nn.Linear(4, 3)
criterion = nn.CrossEntropyLoss(reduction="none")
x, y = torch.randn(6, 4), torch.randint(0, 3, (6,))
weights = torch.tensor([1.0, 1.0, 2.0, 0.5, 1.0, 0.5])
# %%
loss = criterion(net(x), y)
weighted = weights * loss
weighted.mean().backward()
