# %%
import torch

w = torch.full((2,), 3.0, requires_grad=True)
# %%
with torch.autograd.detect_anomaly():
    loss = (w * w).sum()
    loss.backward()
