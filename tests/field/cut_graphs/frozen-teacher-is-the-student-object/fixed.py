# %%
import copy

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


class MeanTeacher:
    def __init__(self, student, decay=0.95):
        self.student = student
        self.teacher = copy.deepcopy(student)
        self.decay = decay
        self.freeze(self.teacher)

    @staticmethod
    def freeze(net):
        net.eval()
        for p in net.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self):
        for pt, ps in zip(self.teacher.parameters(), self.student.parameters()):
            pt.lerp_(ps, 1 - self.decay)

    def consistency(self, x, noise=0.1):
        with torch.no_grad():
            soft = self.teacher(x + noise * torch.randn_like(x)).softmax(-1)
        pred = self.student(x + noise * torch.randn_like(x))
        return F.kl_div(pred.log_softmax(-1), soft, reduction="batchmean")
# %%
def mlp():
    return nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 3))


student = mlp()
best = copy.deepcopy(student.state_dict())
opt = torch.optim.SGD(student.parameters(), lr=0.1)
mt = MeanTeacher(student)
# %%
x_lab, y_lab = torch.randn(6, 6), torch.randint(0, 3, (6,))
x_unl = torch.randn(20, 6)
for epoch in range(3):
    student.train()
    sup = F.cross_entropy(student(x_lab), y_lab)
    loss = sup + 2.0 * mt.consistency(x_unl)
    opt.zero_grad()
    loss.backward()
    opt.step()
    mt.update()
print(loss.item())
