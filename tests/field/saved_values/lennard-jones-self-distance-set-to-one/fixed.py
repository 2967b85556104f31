# %%
from dataclasses import dataclass

import torch

torch.manual_seed(0)


@dataclass
class LJ:
    eps: float = 1.0
    sigma: float = 0.8


def pair_distances(pos):
    disp = pos[:, None, :] - pos[None, :, :]
    return disp, disp.norm(dim=-1)


def potential(pos, ff):
    _, r = pair_distances(pos)
    diag = torch.eye(len(pos), dtype=torch.bool)
    r = r.masked_fill(diag, 1.0)     # avoid 1/0 for i == j
    sr6 = (ff.sigma / r) ** 6
    e = 4 * ff.eps * (sr6 ** 2 - sr6)
    e[diag] = 0.0
    return e.sum() / 2
# %%
grid = torch.cartesian_prod(*[torch.arange(2.0)] * 3)
pos = (grid + 0.05 * torch.randn(8, 3)).requires_grad_()
ff = LJ()
# %%
# a few steps of steepest descent
trace = []
for it in range(5):
    energy = potential(pos, ff)
    force = -torch.autograd.grad(energy, pos)[0]
    with torch.no_grad():
        pos += 0.002 * force
    trace.append(energy.item())
print(trace)
