# %%
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 2))

def summarize(layer):
    w = layer.weight.detach().numpy()
    return {"mean": w.mean(), "std": w.std(), "max": np.abs(w).max()}
# %%
log = []
for m in net:
    if isinstance(m, nn.Linear):
        log.append(summarize(m))
print(log)
