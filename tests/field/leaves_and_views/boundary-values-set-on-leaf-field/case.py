# %%
import torch

n = 8
u = torch.zeros(n, requires_grad=True)
f = torch.ones(n)
h = 1.0 / (n - 1)

def apply_boundary(u, left, right):
    u[0] = left
    u[-1] = right
    return u

def residual(u):
    lap = (u[2:] - 2 * u[1:-1] + u[:-2]) / h ** 2
    return (lap + f[1:-1]).pow(2).mean()
# %%
loss = residual(apply_boundary(u, 0.5, -0.5))
loss.backward()
print(u.grad)
