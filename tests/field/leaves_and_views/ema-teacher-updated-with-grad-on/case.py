# %%
import copy
import torch
import torch.nn as nn

torch.manual_seed(0)
student = nn.Sequential(nn.Linear(3, 5), nn.ReLU(inplace=True), nn.Linear(5, 1))
teacher = copy.deepcopy(student)
# %%
def ema_update(teacher, student, decay=0.9):
    for pt, ps in zip(teacher.parameters(), student.parameters()):
        pt.mul_(decay).add_(ps, alpha=1 - decay)
# %%
opt = torch.optim.SGD(student.parameters(), lr=0.1)
x, y = torch.randn(12, 3), torch.randn(12, 1)
for step in range(3):
    loss = nn.functional.mse_loss(student(x), y)
    with torch.no_grad():
        soft = teacher(x)
    loss = loss + 0.5 * nn.functional.mse_loss(student(x), soft)
    opt.zero_grad()
    loss.backward()
    opt.step()
    ema_update(teacher, student)
