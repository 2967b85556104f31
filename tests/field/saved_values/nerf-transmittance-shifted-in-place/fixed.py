# %%
import math

import torch
from torch import nn

torch.manual_seed(0)


class RadianceField(nn.Module):
    def __init__(self, n_freqs=3, hidden=16):
        super().__init__()
        self.register_buffer("freqs", 2.0 ** torch.arange(n_freqs) * math.pi)
        self.net = nn.Sequential(nn.Linear(6 * n_freqs, hidden), nn.ReLU(), nn.Linear(hidden, 4))

    def forward(self, xyz):
        ang = (xyz.unsqueeze(-1) * self.freqs).flatten(-2)
        raw = self.net(torch.cat([ang.sin(), ang.cos()], -1))
        return torch.sigmoid(raw[..., :3]), nn.functional.softplus(raw[..., 3])
# %%
class Renderer:
    def __init__(self, field, near=0.5, far=2.5, n_samples=10):
        self.field = field
        self.depths = torch.linspace(near, far, n_samples)

    def composite(self, rgb, sigma):
        delta = self.depths.diff()
        delta = torch.cat([delta, delta[-1:]])
        alpha = 1.0 - torch.exp(-sigma * delta)
        trans = torch.cumprod(1.0 - alpha + 1e-10, dim=-1)
        trans = torch.cat([torch.ones_like(trans[..., :1]), trans[..., :-1]], dim=-1)
        weights = alpha * trans
        return (weights.unsqueeze(-1) * rgb).sum(-2), (weights * self.depths).sum(-1)

    def __call__(self, origins, dirs):
        pts = origins.unsqueeze(-2) + dirs.unsqueeze(-2) * self.depths.unsqueeze(-1)
        return self.composite(*self.field(pts))
# %%
field = RadianceField()
render = Renderer(field)
optimizer = torch.optim.Adam(field.parameters(), lr=5e-3)
origins = torch.zeros(12, 3)
dirs = nn.functional.normalize(torch.randn(12, 3), dim=-1)
pixels = torch.rand(12, 3)

for it in range(5):
    color, depth = render(origins, dirs)
    loss = nn.functional.mse_loss(color, pixels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), depth.mean().item())
