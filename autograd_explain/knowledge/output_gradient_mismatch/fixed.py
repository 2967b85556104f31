# %%
import torch

x = torch.linspace(0, 1, 6).reshape(3, 2).requires_grad_()
# %%
y = torch.sin(x)
y.backward(gradient=torch.ones_like(y))
print(x.grad)
