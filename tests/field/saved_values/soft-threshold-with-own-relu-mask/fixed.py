# %%
import torch

torch.manual_seed(0)
basis = torch.randn(4, 6, requires_grad=True)

def magnitude(re, im, eps=1e-6):
    return torch.sqrt(re ** 2 + im ** 2 + eps)

def shrink(mag, lam):
    mag = mag - lam
    mag = torch.where(mag < 0, 0.0, mag)
    return mag
# %%
x = torch.randn(5, 4)
coef = x @ basis
re, im = coef[:, :3], coef[:, 3:]
energy = shrink(magnitude(re, im), 0.3)
loss = energy.sum()
loss.backward()
