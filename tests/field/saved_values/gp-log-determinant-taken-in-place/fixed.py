# %%
import math

import torch

torch.manual_seed(0)
X = torch.linspace(0, 4, 12, dtype=torch.float64).unsqueeze(1)
y = torch.sin(2 * X)
y += 0.1 * torch.randn(12, 1, dtype=torch.float64)
# %%
hyper = {name: torch.tensor(math.log(v), dtype=torch.float64, requires_grad=True)
         for name, v in [("lengthscale", 1.0), ("scale", 1.0), ("noise", 0.1)]}


def covariance(A, B):
    sq = (A.unsqueeze(1) - B.unsqueeze(0)).pow(2).sum(-1)
    return hyper["scale"].exp() * torch.exp(-0.5 * sq / hyper["lengthscale"].exp() ** 2)


def neg_log_marginal(X, y):
    K = covariance(X, X)
    K.diagonal().add_(hyper["noise"].exp() + 1e-6)
    L = torch.linalg.cholesky(K)
    weights = torch.cholesky_solve(y, L)
    fit = (y * weights).sum()
    logdet = L.diagonal().log().sum()
    return 0.5 * fit + logdet + 0.5 * len(X) * math.log(2 * math.pi)
# %%
opt = torch.optim.Adam(hyper.values(), lr=0.05)
trace = []
for it in range(4):
    opt.zero_grad()
    nlml = neg_log_marginal(X, y)
    nlml.backward()
    opt.step()
    trace.append(nlml.item())
print(trace)
