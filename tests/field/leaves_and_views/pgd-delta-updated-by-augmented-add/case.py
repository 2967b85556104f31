# %%
import torch
import torch.nn as nn

torch.manual_seed(0)
clf = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
clf.requires_grad_(False)
x, y = torch.rand(4, 6), torch.tensor([0, 1, 2, 0])

def pgd(x, y, eps=0.1, alpha=0.04, steps=3):
    delta = torch.zeros_like(x, requires_grad=True)
    for _ in range(steps):
        loss = nn.functional.cross_entropy(clf(x + delta), y)
        grad, = torch.autograd.grad(loss, delta)
        delta += alpha * grad.sign()
        with torch.no_grad():
            delta.clamp_(-eps, eps)
    return delta, loss
# %%
delta, loss = pgd(x, y)
print(delta.abs().max())
