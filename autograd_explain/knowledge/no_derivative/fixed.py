# %%
import torch
import torch.nn.functional as F

torch.manual_seed(0)
scores = torch.randn(4, requires_grad=True)
p, y = scores.sigmoid(), torch.ones(4)
w = scores.abs()
# %%
loss = F.binary_cross_entropy(p, y, weight=w.detach())
loss.backward()
