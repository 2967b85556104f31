# %%
import torch

x = torch.zeros(4, requires_grad=True)
# %%
x.resize_(6)
print(x.shape)
