# %%
import numpy as np
import torch

start = {"level": np.array([0.2, 0.4], dtype=np.float32), "rate": np.array([1.5, 0.5])}


def unknowns(values):
    params = {}
    for name, value in values.items():
        raw = torch.tensor(value)
        params[name] = raw.float().requires_grad_()
    return params
# %%
params = unknowns(start)
times = torch.linspace(0, 1, 4).unsqueeze(1)
curve = params["level"] * torch.exp(-params["rate"] * times)
misfit = (curve - 0.3).square().sum()
misfit.backward()
# %%
slopes = {name: p.grad for name, p in params.items()}
print(slopes)
