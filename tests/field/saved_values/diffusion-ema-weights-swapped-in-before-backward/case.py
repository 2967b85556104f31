# %%
import copy
from contextlib import contextmanager

import torch
import torch.nn as nn

torch.manual_seed(0)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 16), nn.SiLU(), nn.Linear(16, 2))

    def forward(self, x, t):
        return self.net(torch.cat([x, t], dim=1))


@contextmanager
def ema_scope(model, shadow):
    backup = copy.deepcopy(model.state_dict())
    load(model, shadow)
    try:
        yield model
    finally:
        load(model, backup)


@torch.no_grad()
def load(model, state):
    for name, p in model.named_parameters():
        p.copy_(state[name])
# %%
def diffusion_loss(model, x0):
    t = torch.rand(len(x0), 1)
    noise = torch.randn_like(x0)
    xt = (1 - t).sqrt() * x0 + t.sqrt() * noise
    return (model(xt, t) - noise).pow(2).mean()


@torch.no_grad()
def sample(model, n=4, steps=3):
    g = torch.Generator().manual_seed(1)
    x = torch.randn(n, 2, generator=g)
    for k in range(steps, 0, -1):
        x -= model(x, torch.full((n, 1), k / steps)) / steps
    return x
# %%
model = Denoiser()
shadow = copy.deepcopy(model.state_dict())
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
x0 = torch.randn(64, 2) * 0.3 + 1
losses, previews = [], []
for step in range(1, 7):
    loss = diffusion_loss(model, x0)
    if step % 3 == 0:
        with ema_scope(model, shadow) as ema_model:
            previews.append(sample(ema_model))
    opt.zero_grad()
    loss.backward()
    opt.step()
    for name, p in model.state_dict().items():
        shadow[name].lerp_(p, 0.1)
    losses.append(loss.item())
print(losses)
