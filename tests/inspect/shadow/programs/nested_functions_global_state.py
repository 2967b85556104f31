# %%
import torch
counter = torch.zeros(3)
calls = 0


def bump():
    global calls, counter
    calls += 1
    counter += 1  # wrote


def model(w):
    out = w * counter  # saved
    bump()
    return out


# %%
w = torch.rand(3, requires_grad=True)
l = sum(model(w).sum() for _ in range(3))
l.backward()
