# %%
import torch

torch.manual_seed(0)
w = torch.randn(3, requires_grad=True)

def buffers(n):
    flat = torch.ones(n)
    head, tail = flat[: n // 2], flat[n // 2 :]
    return flat, head, tail
# %%
flat, head, tail = buffers(6)
with torch.no_grad():
    head += 1
tail.mul_(w)
loss = flat.pow(2).sum()
loss.backward()
