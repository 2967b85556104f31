# %%
import warnings

import torch

torch.manual_seed(0)
warnings.filterwarnings("ignore", message="Error detected in")
torch.autograd.set_detect_anomaly(True)
points = torch.randn(4, 2, requires_grad=True)
# %%
pairs = points[:, None] - points[None]
gap = pairs.square().sum(-1)
distance = torch.sqrt(gap)
energy = (distance.tril() * 0.5).sum()
energy.backward()
