# %%
import torch

torch.manual_seed(0)
points = torch.randn(4, 2, requires_grad=True)
# %%
gap = (points[:, None] - points[None]).square().sum(-1)
distance = torch.where(gap > 0, torch.sqrt(torch.where(gap > 0, gap, 1.0)), 0.0)
energy = distance.sum()
energy.backward()
