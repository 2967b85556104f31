# %%
import torch

torch.manual_seed(0)
x = torch.randn(4)
w = torch.randn(4, requires_grad=True)
# %%
buffer = torch.empty(4)
buffer = torch.mul(x, w)
loss = buffer.square().sum()
loss.backward()
print(w.grad)
