# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class GANTrainer:
    def __init__(self, z_dim=3):
        self.gen = nn.Sequential(nn.Linear(z_dim, 12), nn.ReLU(), nn.Linear(12, 2))
        self.disc = nn.Sequential(nn.Linear(2, 12), nn.LeakyReLU(0.2), nn.Linear(12, 1))
        self.opt_g = torch.optim.SGD(self.gen.parameters(), lr=0.05)
        self.opt_d = torch.optim.SGD(self.disc.parameters(), lr=0.05)
        self.z_dim = z_dim

    def noise(self, n):
        return torch.randn(n, self.z_dim)

    def d_step(self, real):
        fake = self.gen(self.noise(len(real))).detach()
        loss = F.softplus(-self.disc(real)).mean() + F.softplus(self.disc(fake)).mean()
        self.opt_d.zero_grad()
        loss.backward()
        self.opt_d.step()
        return loss.item()

    def g_step(self, n):
        loss = F.softplus(-self.disc(self.gen(self.noise(n)))).mean()
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
        return loss.item()
# %%
trainer = GANTrainer()
angle = torch.rand(48) * 6.28
data = torch.stack([angle.cos(), angle.sin()], dim=1)
# %%
curve = []
for epoch in range(4):
    for real in data.split(16):
        curve.append((trainer.d_step(real), trainer.g_step(16)))
print(curve[-1])
