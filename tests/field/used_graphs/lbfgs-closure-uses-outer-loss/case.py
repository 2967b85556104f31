# %%
import torch

torch.manual_seed(0)
A = torch.diag(torch.tensor([1.0, 4.0, 9.0]))
b = torch.tensor([1.0, -2.0, 0.5])
x = torch.zeros(3, requires_grad=True)


def energy(v):
    return 0.5 * v @ A @ v - b @ v + 0.1 * v.pow(4).sum()
# %%
solver = torch.optim.LBFGS([x], lr=1.0, max_iter=10)
loss = energy(x)

def closure():
    solver.zero_grad()
    loss.backward()
    return loss

solver.step(closure)
print(x)
