# %%
import torch
from torch import nn
from torch.distributions import MultivariateNormal

torch.manual_seed(0)


class GaussianGroup(nn.Module):
    def __init__(self, dim, start):
        super().__init__()
        self.mean = nn.Parameter(torch.full((dim,), float(start)))
        self.raw = nn.Parameter(0.1 * torch.randn(dim, dim))

    @property
    def dist(self):
        tril = torch.tril(self.raw, -1) + torch.diag(self.raw.diagonal().exp())
        return MultivariateNormal(self.mean, scale_tril=tril)

    def nll(self, x):
        return -self.dist.log_prob(x).mean()
# %%
def make_data(n=24):
    a = torch.randn(n, 2) @ torch.tensor([[1.0, 0.4], [0.0, 0.5]]) - 1
    b = torch.randn(n, 2) @ torch.tensor([[0.3, 0.0], [0.2, 0.8]]) + 2
    return {"low": a, "high": b}


def batches(data, size=8):
    for lo in range(0, 24, size):
        yield {k: v[lo:lo + size] for k, v in data.items()}
# %%
data = make_data()
groups = nn.ModuleDict({"low": GaussianGroup(2, -0.5), "high": GaussianGroup(2, 0.5)})
optimizer = torch.optim.SGD(groups.parameters(), lr=0.05)
trace = []
# %%
for epoch in range(2):
    for batch in batches(data):
        optimizer.zero_grad()
        loss = sum(groups[k].nll(x) for k, x in batch.items())
        loss.backward()
        optimizer.step()
        trace.append(loss.item())
print(trace)
