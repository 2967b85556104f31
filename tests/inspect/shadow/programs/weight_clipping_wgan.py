# %%
import torch
from torch import nn
torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, 1))
gen = nn.Linear(3, 2)
opt_d = torch.optim.RMSprop(critic.parameters(), lr=5e-4)
opt_g = torch.optim.RMSprop(gen.parameters(), lr=5e-4)


def clip(net, c=0.01):
    for p in net.parameters():
        p.data.clamp_(-c, c)


# %%
real = torch.randn(8, 2)
for it in range(2):
    fake = gen(torch.randn(8, 3))
    d_fake = critic(fake)  # saved
    d_real = critic(real)
    loss_d = (d_fake - d_real).mean()
    opt_d.zero_grad()
    loss_d.backward(retain_graph=True)
    opt_d.step()  # wrote
    clip(critic)
    opt_g.zero_grad()
    (-d_fake.mean()).backward()
    opt_g.step()
