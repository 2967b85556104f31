# %%
import torch
from torch.nn import functional as F

torch.manual_seed(0)
mu = torch.zeros(3, requires_grad=True)
rho = torch.full((3,), -1.0, requires_grad=True)

def kl_to_standard(mu, rho):
    sigma = F.softplus(rho)
    return (0.5 * (mu ** 2 + sigma ** 2) - sigma.log()).sum()
# %%
obs = torch.randn(20, 3) + torch.tensor([1.0, 0.0, -1.0])
opt = torch.optim.SGD([mu, rho], lr=0.01)
for chunk in obs.chunk(4):
    opt.zero_grad()
    nll = ((chunk - mu) ** 2 / (2 * F.softplus(rho) ** 2)).sum()
    prior = kl_to_standard(mu, rho)
    elbo = nll + prior / 4
    elbo.backward()
    opt.step()
