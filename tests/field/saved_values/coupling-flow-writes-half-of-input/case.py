# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class AffineCoupling(nn.Module):
    def __init__(self, dim, hidden=8):
        super().__init__()
        self.half = dim // 2
        self.net = nn.Sequential(nn.Linear(self.half, hidden), nn.Tanh(), nn.Linear(hidden, 2 * (dim - self.half)))

    def forward(self, x, logdet):
        s, t = self.net(x[:, :self.half]).chunk(2, dim=1)
        s = torch.tanh(s)
        x[:, self.half:] = x[:, self.half:] * s.exp() + t
        return x.flip(1), logdet + s.sum(1)


flow = nn.ModuleList([AffineCoupling(4), AffineCoupling(4), AffineCoupling(4)])
# %%
def log_prob(x):
    logdet = x.new_zeros(len(x))
    for layer in flow:
        x, logdet = layer(x, logdet)
    base = -0.5 * (x ** 2).sum(1)
    base -= 0.9189 * x.size(1)
    return base + logdet
# %%
data = torch.randn(32, 4) * torch.tensor([1.0, 2.0, 0.5, 1.5])
nll = -log_prob(data.clone()).mean()
nll.backward()
