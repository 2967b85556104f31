# %%
import torch
import torch.nn as nn

torch.manual_seed(0)
enc, dec = nn.Linear(3, 6), nn.Linear(6, 3)

def sparse_code(x, thr=0.1):
    h = torch.tanh(enc(x))
    h = h.masked_fill(h < thr, 0)
    return h
# %%
x = torch.randn(10, 3)
code = sparse_code(x)
loss = (dec(code) - x).pow(2).mean()
loss.backward()
print((code != 0).float().mean().item())
