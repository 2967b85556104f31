# %%
import torch
import torch.nn as nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 1))
gen = nn.Linear(4, 2)
opt_critic = torch.optim.RMSprop(critic.parameters(), lr=5e-3)
CLIP = 0.1
# %%
def critic_step(real):
    fake = gen(torch.randn(len(real), 4)).detach()
    loss = critic(fake).mean() - critic(real).mean()
    opt_critic.zero_grad()
    loss.backward()
    opt_critic.step()
    for p in critic.parameters():
        p.data.clamp_(-CLIP, CLIP)
    return loss
# %%
for n in range(3):
    real = torch.randn(16, 2) * 0.3 + 1.0
    loss = critic_step(real)
