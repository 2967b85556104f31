# %%
import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
block = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 4))
# %%
x = torch.randn(2, 4, requires_grad=True)
y = checkpoint(block, x)
y.square().mean().backward()
