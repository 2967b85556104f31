# %%
import torch
from torch import nn
import torch.nn.functional as F


class VAE(nn.Module):
    def __init__(self, d=6, z=2):
        super().__init__()
        self.enc = nn.Linear(d, 8)
        self.mu, self.logvar = nn.Linear(8, z), nn.Linear(8, z)
        self.dec = nn.Sequential(nn.Linear(z, 8), nn.ReLU(), nn.Linear(8, d))

    def reparameterise(self, mu, logvar):
        std = torch.exp(logvar.mul_(0.5))  # wrote
        return mu + std * torch.randn_like(std)

    def forward(self, x):
        h = F.relu(self.enc(x))
        mu, logvar = self.mu(h), self.logvar(h)
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum()
        self.spread = logvar.pow(2).sum()  # saved
        z = self.reparameterise(mu, logvar)
        return self.dec(z), kl


# %%
torch.manual_seed(0)
vae = VAE()
x = torch.rand(4, 6)
recon, kl = vae(x)
loss = F.mse_loss(recon, x) + kl + vae.spread
loss.backward()
