# %%
import torch
import torch.autograd.forward_ad as fwAD

x = torch.linspace(0, 1, 3)
direction = torch.ones(3)
# %%
dual = fwAD.make_dual(x, direction)
slope = fwAD.unpack_dual(dual.exp()).tangent
