# %%
import torch
import torch.autograd.forward_ad as fwAD

points = torch.tensor([[0.0, 0.0], [1.0, 1.0]])
# %%
with fwAD.dual_level():
    moved = fwAD.make_dual(points, torch.ones(2, 2))
    distances = torch.cdist(moved, points)
    print(fwAD.unpack_dual(distances).tangent)
