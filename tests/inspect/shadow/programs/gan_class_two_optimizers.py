# %%
import torch
from torch import nn
torch.manual_seed(0)


class GAN:
    def __init__(self, zdim=4, lr=0.01):
        self.gen = nn.Sequential(nn.Linear(zdim, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 2))
        self.critic = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 1))
        self.opt_gen = torch.optim.Adam(self.gen.parameters(), lr=lr)
        self.opt_critic = torch.optim.AdamW(self.critic.parameters(), lr=lr)
        self.zdim = zdim

    def critic_loss(self, real, fake_score):
        return self.critic(real).mean() - fake_score.mean()

    def step(self, real):
        z = torch.randn(len(real), self.zdim)
        fake = self.gen(z)
        score = self.critic(fake)  # saved
        loss_c = self.critic_loss(real, score)
        self.opt_critic.zero_grad()
        loss_c.backward(retain_graph=True)
        self.opt_critic.step()  # wrote
        loss_g = -score.mean()
        self.opt_gen.zero_grad()
        loss_g.backward()
        self.opt_gen.step()
        return loss_c.item(), loss_g.item()


# %%
gan = GAN()
data = torch.randn(40, 2)
# %%
for epoch in range(3):
    for batch in data.split(10):
        print(gan.step(batch))
