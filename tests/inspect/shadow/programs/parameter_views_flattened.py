# %%
import torch
torch.manual_seed(0)
flat = torch.randn(12, requires_grad=True)


def unpack(v):
    return v[:6].view(2, 3), v[6:].view(3, 2)


def net(x):
    a, b = unpack(flat)
    return torch.relu(x @ a) @ b  # saved


# %%
opt = torch.optim.SGD([flat], lr=0.1)
x = torch.randn(4, 2)
y1 = net(x)
y2 = net(-x)
y1.sum().backward()
opt.step()  # wrote
y2.sum().backward()
