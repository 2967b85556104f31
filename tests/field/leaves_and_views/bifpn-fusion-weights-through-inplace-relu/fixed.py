# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
ACTIVATION = nn.ReLU(inplace=True)


class FuseFeature(nn.Module):
    """可学习权重的加权融合 (fast normalized fusion)"""

    def __init__(self, n_inputs, ch, eps=1e-4):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(n_inputs) + 0.5)
        self.conv = nn.Conv2d(ch, ch, 3, padding=1)
        self.act, self.eps = ACTIVATION, eps

    def forward(self, *maps):
        weight = F.relu(self.weight)
        weight = weight / (weight.sum() + self.eps)
        fused = sum(w * m for w, m in zip(weight, maps))
        return self.act(self.conv(fused))
# %%
class BiFPNLayer(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.td = FuseFeature(2, ch)
        self.bu = FuseFeature(2, ch)

    def forward(self, maps):
        p3, p4 = maps
        p3 = self.td(p3, F.interpolate(p4, scale_factor=2))
        p4 = self.bu(p4, F.max_pool2d(p3, 2))
        return [p3, p4]
# %%
bifpn = nn.Sequential(BiFPNLayer(4), BiFPNLayer(4))
opt = torch.optim.AdamW(bifpn.parameters(), lr=1e-3)
maps = [torch.randn(2, 4, 8, 8), torch.randn(2, 4, 4, 4)]
heat = [torch.rand(2, 4, 8, 8), torch.rand(2, 4, 4, 4)]
loss = sum(F.mse_loss(out, h) for out, h in zip(bifpn(maps), heat))
loss.backward()
opt.step()
