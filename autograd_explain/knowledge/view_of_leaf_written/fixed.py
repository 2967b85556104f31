# %%
import torch

limits = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
# %%
cost = (limits * torch.tensor([1.0, 2.0, 3.0])).sum()
cost.backward()
if limits[0] < 0.5:
    with torch.no_grad():
        limits[0] = 0.5
