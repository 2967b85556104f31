# %%
import copy
import torch
from torch import nn
torch.manual_seed(0)
student = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
teacher = copy.deepcopy(student)


def ema(src, dst, decay=0.9):
    with torch.no_grad():
        for a, b in zip(src.parameters(), dst.parameters()):
            b.mul_(decay).add_(a, alpha=1 - decay)  # wrote


# %%
opt = torch.optim.SGD(student.parameters(), lr=0.1)
x = torch.randn(5, 4, requires_grad=True)
for it in range(2):
    t = teacher(x)  # saved
    s = student(x)
    loss = (s - t).pow(2).mean()
    ema(student, teacher)
    opt.zero_grad()
    loss.backward()
    opt.step()
