# %%
import torch

def trajectory(t):
    return torch.stack([torch.cos(t), torch.sin(t)])

velocity = torch.autograd.functional.jacobian(trajectory, 0.5)
print(velocity)
