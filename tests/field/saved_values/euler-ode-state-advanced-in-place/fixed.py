# %%
import torch
from torch import nn

class VectorField(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 10), nn.Tanh(), nn.Linear(10, 2))
        self.calls = 0

    def forward(self, t, y):
        self.calls += 1
        return self.net(y)

def odeint(f, y0, ts):
    y, path = y0.clone(), [y0]
    for t0, t1 in zip(ts[:-1], ts[1:]):
        y = y.add((t1 - t0) * f(t0, y))
        path.append(y.clone())
    return torch.stack(path)
# %%
torch.manual_seed(0)
field = VectorField()
ts = torch.linspace(0, 1, 5)
truth = torch.stack([torch.cos(ts), torch.sin(ts)], 1)
path = odeint(field, truth[0], ts)
loss = (path - truth).abs().mean()
loss.backward()
