# %%
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)


class VAE(nn.Module):
    def __init__(self, n=6, z=2):
        super().__init__()
        self.enc = nn.Linear(n, 8)
        self.to_mu = nn.Linear(8, z)
        self.to_raw = nn.Linear(8, z)
        self.dec = nn.Linear(z, n)

    def encode(self, x):
        h = torch.tanh(self.enc(x))
        return self.to_mu(h), F.softplus(self.to_raw(h)) + 1e-4

    def sample(self, mu, sigma, temperature):
        sigma.mul_(temperature)
        return mu + sigma * torch.randn_like(mu)

    def forward(self, x, temperature=1.0):
        mu, sigma = self.encode(x)
        kl = (0.5 * (mu.pow(2) + sigma.pow(2)) - sigma.log() - 0.5).sum(1).mean()
        z = self.sample(mu, sigma, temperature)
        return self.dec(z), kl
# %%
vae = VAE()
x = torch.rand(10, 6)
# %%
recon, kl = vae(x, temperature=0.7)
loss = F.mse_loss(recon, x) + 0.1 * kl
loss.backward()
