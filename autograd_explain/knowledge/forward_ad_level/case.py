# %%
import torch
import torch.autograd.forward_ad as fwAD

x = torch.tensor([1.0, 2.0])
direction = torch.tensor([1.0, 0.0])
dual = fwAD.make_dual(x, direction)
print(fwAD.unpack_dual(dual.sin()).tangent)
