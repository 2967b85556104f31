# %%
import torch

w = torch.ones(2, 3, requires_grad=True)
w.grad = torch.zeros(3, 2).t()
# %%
loss = (w * 2).sum()
loss.backward()
print(w.grad)
