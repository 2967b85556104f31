# %%
import torch

def trajectory(t):
    return torch.stack([torch.cos(t), torch.sin(t)])

velocity = torch.autograd.functional.jacobian(trajectory, torch.tensor(0.5))
print(velocity)
