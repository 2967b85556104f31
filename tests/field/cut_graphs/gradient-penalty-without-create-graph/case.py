# %%
import torch
import torch.nn as nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(2, 16), nn.Softplus(), nn.Linear(16, 1))
generator = nn.Linear(3, 2)
# %%
def gradient_penalty(critic, real, fake):
    alpha = torch.rand(real.size(0), 1)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    scores = critic(mixed)
    grads, = torch.autograd.grad(scores.sum(), mixed)
    return ((grads.norm(2, dim=1) - 1) ** 2).mean()
# %%
real = torch.randn(8, 2)
fake = generator(torch.randn(8, 3)).detach()
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))
opt_c.zero_grad()
gp = gradient_penalty(critic, real, fake)
gp.backward()
opt_c.step()
