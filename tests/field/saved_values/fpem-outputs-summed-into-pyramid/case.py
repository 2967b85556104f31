# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


def resize_add(x, y):
    return F.interpolate(x, size=y.shape[-2:]) + y


class FPEM(nn.Module):
    """One enhancement pass, top-down then bottom-up."""

    def __init__(self, ch):
        super().__init__()
        self.smooth = nn.ModuleList([nn.Conv2d(ch, ch, 3, padding=1) for _ in range(3)])

    def forward(self, pyramid):
        c2, c3, c4 = pyramid
        c3 = F.relu(self.smooth[1](resize_add(c4, c3)))
        c2 = F.relu(self.smooth[0](resize_add(c3, c2)))
        c4 = F.relu(self.smooth[2](c4 + F.avg_pool2d(c3, 2)))
        return [c2, c3, c4]
# %%
class PANHead(nn.Module):
    def __init__(self, ch, n_stages=2):
        super().__init__()
        self.stages = nn.ModuleList([FPEM(ch) for _ in range(n_stages)])
        self.out = nn.Conv2d(3 * ch, 1, 1)

    def forward(self, pyramid):
        fused = None
        for stage in self.stages:
            pyramid = stage(pyramid)
            if fused is None:
                fused = list(pyramid)
            else:
                for i, level in enumerate(pyramid):
                    fused[i] += level
        size = fused[0].shape[-2:]
        return self.out(torch.cat([F.interpolate(f, size=size) for f in fused], dim=1))
# %%
net = PANHead(4)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
maps = [torch.randn(2, 4, s, s) for s in (16, 8, 4)]
text_mask = (torch.rand(2, 1, 16, 16) > 0.7).float()
loss = F.binary_cross_entropy_with_logits(net(maps), text_mask)
opt.zero_grad()
loss.backward()
opt.step()
