# %%
import torch

torch.manual_seed(0)


class GP:
    """RBF カーネルのガウス過程(平均ゼロ)"""

    def __init__(self, x, y, length=0.4, noise=1e-3):
        self.x, self.length = x, length
        k = self.kernel(x, x)
        k.diagonal().add_(noise)
        self.chol = torch.linalg.cholesky(k)
        self.alpha = torch.cholesky_solve(y.unsqueeze(1), self.chol)

    def kernel(self, a, b):
        d2 = (a[:, None] - b[None]).pow(2).sum(-1)
        return torch.exp(-d2 / (2 * self.length ** 2))

    def posterior(self, q):
        k = self.kernel(q, self.x)
        v = torch.cholesky_solve(k.t(), self.chol)
        var = 1 - (k * v.t()).sum(1)
        return (k @ self.alpha).squeeze(1), var.clamp_min(1e-6)
# %%
def upper_bound(gp, q, beta=2.0):
    mean, var = gp.posterior(q)
    return mean + beta * var.sqrt()


def starting_points(incumbent, n, spread):
    base = torch.tensor(incumbent, requires_grad=True)
    cloud = base.repeat(n, 1)
    return cloud + spread * torch.randn(n, len(incumbent))
# %%
x = torch.rand(8, 2)
y = torch.sin(4 * x[:, 0]) * torch.cos(3 * x[:, 1])
gp = GP(x, y)
q = starting_points(x[y.argmax()].tolist(), n=5, spread=0.1)
opt = torch.optim.Adam([q], lr=0.02)
best = []
for _ in range(4):
    opt.zero_grad()
    acq = upper_bound(gp, q)
    (-acq.sum()).backward()
    opt.step()
    best.append(acq.max().item())
print(best)
