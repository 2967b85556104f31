# %%
import torch
from torch import nn

torch.manual_seed(0)
teacher, student = nn.Linear(4, 2), nn.Linear(4, 2)
x = torch.randn(6, 4)
# %%
target = teacher(x)
target = target.detach()
loss = nn.functional.mse_loss(student(x), target)
loss.backward()
print(student.weight.grad.norm())
