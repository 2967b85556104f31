# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class SqueezeExcite(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.fc = nn.Linear(ch, ch)

    def forward(self, x):
        w = F.hardsigmoid(self.fc(x.mean((2, 3))))
        return x * w[:, :, None, None]


class MBConv(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.conv = nn.Conv2d(1, ch, 3, padding=1)
        self.se = SqueezeExcite(ch)

    def forward(self, img):
        feat = self.conv(img)
        scaled = self.se(feat)
        shortcut = F.hardswish(feat, inplace=True)
        return scaled + shortcut
# %%
block = MBConv(4)
img = torch.randn(2, 1, 6, 6)
loss = block(img).square().mean()
loss.backward()
