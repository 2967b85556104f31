# %%
import torch

torch.manual_seed(0)
positions = torch.randn(4, 3, requires_grad=True)
# %%
flat = positions.reshape(-1)
distances = torch.cdist(positions, positions)
energy = (1 / (distances + torch.eye(4))).triu(diagonal=1).sum()
forces = torch.autograd.grad(-energy, positions)[0]
print(forces.shape)
