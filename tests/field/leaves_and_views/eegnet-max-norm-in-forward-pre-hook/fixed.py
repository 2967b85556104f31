# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


def max_norm(limit):
    def hook(module, args):
        with torch.no_grad():
            module.weight.renorm_(p=2, dim=0, maxnorm=limit)
    return hook


class EEGNet(nn.Module):
    def __init__(self, chans=4, samples=32, n_class=2):
        super().__init__()
        self.temporal = nn.Conv2d(1, 3, (1, 9), padding=(0, 4), bias=False)
        self.bn = nn.BatchNorm2d(3)
        self.spatial = nn.Conv2d(3, 6, (chans, 1), groups=3, bias=False)
        self.classify = nn.Linear(6 * samples // 8, n_class)
        self.spatial.register_forward_pre_hook(max_norm(1.0))
        self.classify.register_forward_pre_hook(max_norm(0.25))

    def forward(self, x):
        x = self.bn(self.temporal(x))
        x = F.elu(self.spatial(x), inplace=True)
        x = F.avg_pool2d(x, (1, 8))
        return self.classify(x.flatten(1))
# %%
net = EEGNet()
trials, cls = torch.randn(6, 1, 4, 32), torch.randint(0, 2, (6,))
trials -= trials.mean(dim=-1, keepdim=True)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(3):
    opt.zero_grad()
    loss = F.cross_entropy(net(trials), cls)
    loss.backward()
    opt.step()
print(loss.item())
