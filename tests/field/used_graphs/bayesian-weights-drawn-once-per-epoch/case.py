# %%
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


class BayesLinear(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.mu = nn.Parameter(0.3 * torch.randn(n_out, n_in))
        self.rho = nn.Parameter(torch.full((n_out, n_in), -3.0))
        self.w = None

    def draw(self):
        sigma = F.softplus(self.rho)
        self.w = self.mu + sigma * torch.randn_like(sigma)
        self.kl = (self.mu ** 2 + sigma ** 2 - 2 * sigma.log() - 1).sum() / 2

    def forward(self, x):
        return F.linear(x, self.w)
# %%
class BNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = BayesLinear(3, 8), BayesLinear(8, 1)

    def resample(self):
        for m in self.modules():
            if isinstance(m, BayesLinear):
                m.draw()

    def elbo_loss(self, x, y, n_batches):
        pred = self.second(torch.tanh(self.first(x)))
        nll = 0.5 * (pred - y).pow(2).sum()
        return nll + (self.first.kl + self.second.kl) / n_batches
# %%
x = torch.randn(24, 3)
y = x[:, :1] - x[:, 1:2] * x[:, 2:]
loader = list(zip(x.split(8), y.split(8)))
bnn = BNN()
opt = torch.optim.Adam(bnn.parameters(), lr=5e-3)
log = []
for epoch in range(2):
    bnn.resample()
    for xb, yb in loader:
        loss = bnn.elbo_loss(xb, yb, len(loader))
        opt.zero_grad()
        loss.backward()
        opt.step()
        log.append(loss.item())
