# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class GrowthCurve(nn.Module):
    """u(t) for t in [lo, hi]; the net sees time in [-1, 1]."""

    def __init__(self, lo, hi, width=16):
        super().__init__()
        self.lo, self.hi = lo, hi
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, 1))

    def scale(self, t):
        return 2 * (t - self.lo) / (self.hi - self.lo) - 1

    def forward(self, t):
        return torch.sigmoid(self.net(self.scale(t)))
# %%
def derivative(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


def logistic_residual(model, t, rate):
    u = model(t)
    s = model.scale(t)
    du_ds = derivative(u, s)
    du_dt = du_ds * 2 / (model.hi - model.lo)
    return du_dt - rate * u * (1 - u)
# %%
model = GrowthCurve(0.0, 12.0)
rate = torch.tensor(0.3, requires_grad=True)
opt = torch.optim.Adam([*model.parameters(), rate], lr=1e-2)
days = torch.linspace(0, 12, 25).unsqueeze(1).requires_grad_()
seen_t = torch.tensor([[0.0], [4.0], [9.0]])
seen_u = torch.tensor([[0.05], [0.2], [0.7]])

opt.zero_grad()
loss = logistic_residual(model, days, rate).pow(2).mean() + (model(seen_t) - seen_u).pow(2).mean()
loss.backward()
opt.step()
