# %%
import torch

x = torch.linspace(-1, 1, 5, requires_grad=True)
t = torch.linspace(0, 1, 5, requires_grad=True)
u = torch.sin(3 * x) * torch.exp(-t)
# %%
u_x, u_t = torch.autograd.grad(u.sum(), [x, t])
residual = (u_t - u_x).square().mean()
