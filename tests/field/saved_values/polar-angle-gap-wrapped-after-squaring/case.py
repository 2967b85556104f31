# %%
import math
import torch
import torch.nn as nn

torch.manual_seed(0)


def polar_grid(size, centre):
    """每个格子相对中心点的 (距离, 角度 / 2pi)"""
    yy, xx = torch.meshgrid(torch.arange(size).float(), torch.arange(size).float(), indexing="ij")
    dy, dx = yy - centre[0], xx - centre[1]
    dist = (dx ** 2 + dy ** 2).sqrt() / size
    angle = (torch.atan2(dy, dx) + math.pi) / (2 * math.pi)
    return dist.flatten(), angle.flatten()


class StructureHead(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.conv = nn.Conv2d(ch, 2, 1)

    def forward(self, feat):
        out = self.conv(feat).flatten(2)
        return out[:, 0].relu(), out[:, 1].sigmoid()
# %%
class PolarLoss:
    def __init__(self, size, smooth=0.1):
        self.target_dist, self.target_angle = polar_grid(size, (size // 2, size // 2))
        self.smooth = smooth

    def masked_mean(self, value, mask):
        return (value * mask).sum(dim=1, keepdim=True) / mask.sum(dim=1, keepdim=True)

    def __call__(self, dist, angle, mask):
        dist_loss = self.masked_mean((dist - self.target_dist) ** 2, mask)
        gap_angle = angle - self.target_angle
        absolute = self.masked_mean(gap_angle ** 2, mask)
        # 角度是周期的
        gap_angle[gap_angle < 0] += 1
        centred = gap_angle - self.masked_mean(gap_angle, mask)
        relative = self.masked_mean(centred ** 2, mask)
        return (dist_loss + relative + self.smooth * absolute).mean()
# %%
head, criterion = StructureHead(6), PolarLoss(7)
opt = torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9)
feat = torch.randn(10, 6, 7, 7)
mask = (torch.rand(10, 49) > 0.4).float()
dist, angle = head(feat)
loss = criterion(dist, angle, mask)
opt.zero_grad()
loss.backward()
opt.step()
