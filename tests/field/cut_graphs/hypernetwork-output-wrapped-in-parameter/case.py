# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class HyperNet(nn.Module):
    def __init__(self, n_cond, n_in, n_out):
        super().__init__()
        self.shape = (n_out, n_in)
        self.gen = nn.Sequential(nn.Linear(n_cond, 10), nn.ReLU(), nn.Linear(10, n_out * n_in))

    def forward(self, cond):
        return 0.1 * self.gen(cond).view(self.shape)


class ConditionedField(nn.Module):
    def __init__(self, n_cond=2):
        super().__init__()
        self.hyper = HyperNet(n_cond, 3, 8)
        self.first = nn.Linear(3, 8)
        self.last = nn.Linear(8, 1)

    def forward(self, xyz, cond):
        self.first.weight = nn.Parameter(self.hyper(cond))
        h = torch.sin(self.first(xyz))
        return self.last(h)
# %%
field = ConditionedField()
opt = torch.optim.Adam(field.parameters(), lr=1e-2)
shapes = [(torch.tensor([1.0, 0.0]), 0.5), (torch.tensor([0.0, 1.0]), 0.8)]
curve = []
for epoch in range(5):
    for cond, radius in shapes:
        xyz = torch.rand(32, 3) * 2 - 1
        sdf = xyz.norm(dim=1, keepdim=True) - radius
        loss = F.l1_loss(field(xyz, cond), sdf)
        opt.zero_grad()
        loss.backward()
        opt.step()
        curve.append(loss.item())
print(curve[0], curve[-1])
