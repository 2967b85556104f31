# %%
import torch

positions = torch.arange(6)
targets = torch.tensor([0.0, 1.5, 2.5, 2.9, 4.2, 5.0])
# %%
positions.requires_grad_()
loss = (positions - targets).square().sum()
loss.backward()
print(positions.grad)
