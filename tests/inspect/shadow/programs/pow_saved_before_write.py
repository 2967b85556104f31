# %%
import torch
w = torch.ones(3, requires_grad=True)
x = w * 2
y = x ** 2  # saved
x[0] = 5  # wrote
y.sum().backward()
