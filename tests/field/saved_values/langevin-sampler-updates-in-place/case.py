# %%
import torch
import torch.nn as nn

torch.manual_seed(7)
score_net = nn.Sequential(nn.Linear(2, 12), nn.SiLU(), nn.Linear(12, 2))

def langevin(x, n_steps, eta=0.1):
    """unrolled sampler, we backprop through it"""
    for i in range(n_steps):
        g = score_net(x)
        x -= eta * g
    return x
# %%
target = torch.randn(16, 2) + 3
noise = torch.randn(16, 2)
samples = langevin(noise, n_steps=4)
# %%
loss = (samples.mean(0) - target.mean(0)).square().sum()
loss.backward()
print(loss)
