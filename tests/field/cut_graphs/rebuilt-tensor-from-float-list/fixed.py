# %%
import torch

angles = torch.tensor([0.3, -0.2, 0.5], requires_grad=True)
lengths = [1.0, 0.8, 0.5]

def forward_kinematics(angles):
    total, x, y = 0.0, 0.0, 0.0
    for a, l in zip(angles, lengths):
        total = total + a
        x = x + l * torch.cos(total)
        y = y + l * torch.sin(total)
    return torch.stack([x, y])
# %%
goal = torch.tensor([1.5, 0.9])
tip = forward_kinematics(angles)
loss = (tip - goal).norm()
loss.backward()
