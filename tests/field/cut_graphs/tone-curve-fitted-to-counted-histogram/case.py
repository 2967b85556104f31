# %%
import torch
from torch import nn

torch.manual_seed(0)


class ToneCurve(nn.Module):
    def __init__(self, n_knots=5):
        super().__init__()
        self.delta = nn.Parameter(torch.zeros(n_knots))

    def forward(self, img):
        knots = torch.linspace(0, 1, len(self.delta))
        w = torch.relu(1 - (img.unsqueeze(-1) - knots).abs() * (len(knots) - 1))
        return (img + (w * self.delta).sum(-1)).clamp(0, 1)
# %%
BINS = 8


def histogram(img):
    edges = torch.linspace(0, 1, BINS + 1)[1:-1]
    level = torch.bucketize(img.flatten(), edges)
    count = torch.bincount(level, minlength=BINS).float()
    return count / count.sum()


def soft_histogram(img, width=0.05):
    centres = (torch.arange(BINS) + 0.5) / BINS
    w = torch.exp(-((img.flatten()[:, None] - centres) / width) ** 2 / 2)
    return w.sum(0) / w.sum()


def emd(p, q):
    return (p.cumsum(0) - q.cumsum(0)).abs().sum()
# %%
# 参照写真の階調に合わせる
photo, reference = torch.rand(12, 12) ** 2, torch.rand(12, 12)
curve = ToneCurve()
opt = torch.optim.Adam(curve.parameters(), lr=0.02)
history = []
for _ in range(4):
    out = curve(photo)
    loss = emd(histogram(out), histogram(reference))
    opt.zero_grad()
    loss.backward()
    opt.step()
    history.append(loss.item())
print(history)
