# %%
from dataclasses import dataclass
import torch
import torch.nn as nn

torch.manual_seed(0)


@dataclass
class NoiseSchedule:
    steps: int = 50
    start: float = 1e-3
    end: float = 0.1

    @property
    def alpha_bar(self):
        return torch.cumprod(1 - torch.linspace(self.start, self.end, self.steps), dim=0)

    def add_noise(self, sample, noise, t):
        # 前向扩散: x_t = sqrt(a) * x_0 + sqrt(1 - a) * eps
        a = self.alpha_bar[t].view(-1, 1, 1)
        return sample * a.sqrt() + (1 - a).sqrt() * noise
# %%
class ExpressionEncoder(nn.Module):
    """表情系数 (B, 32, T) -> 潜变量"""

    def __init__(self, n=32, z=8):
        super().__init__()
        self.conv = nn.Conv1d(n, z, 3, padding=1)

    def forward(self, coeffs):
        return torch.tanh(self.conv(coeffs))


class Denoiser(nn.Module):
    def __init__(self, z=8):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(z + 1, 16, 3, padding=1), nn.SiLU(), nn.Conv1d(16, z, 3, padding=1))

    def forward(self, x, t):
        time = (t.float() / 50).view(-1, 1, 1).expand(-1, 1, x.size(-1))
        return self.net(torch.cat([x, time], dim=1))
# %%
schedule, encoder, denoiser = NoiseSchedule(), ExpressionEncoder(), Denoiser()
opt = torch.optim.AdamW([*encoder.parameters(), *denoiser.parameters()], lr=1e-4)
coeffs = torch.rand(4, 32, 20)
for step in range(1):
    latent = encoder(coeffs)
    noise = torch.randn_like(latent)
    t = torch.randint(0, schedule.steps, (latent.size(0),))
    noisy = schedule.add_noise(latent, noise, t)
    loss = nn.functional.mse_loss(denoiser(noisy, t), noise)
    opt.zero_grad()
    loss.backward()
    opt.step()
