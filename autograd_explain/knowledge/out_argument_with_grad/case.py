# %%
import torch

torch.manual_seed(0)
x = torch.randn(4)
w = torch.randn(4, requires_grad=True)
# %%
buffer = torch.empty(4)
torch.mul(x, w, out=buffer)
loss = buffer.square().sum()
loss.backward()
print(w.grad)
