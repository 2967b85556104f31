# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class UNet1d(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([nn.Conv1d(1, 2, 3, padding=1), nn.Conv1d(2, 4, 3, padding=1)])
        self.up = nn.ModuleList([nn.Conv1d(4, 2, 3, padding=1), nn.Conv1d(2, 1, 3, padding=1)])

    def forward(self, x):
        skips = []
        for conv in self.down:
            x = torch.tanh(conv(x))
            skips.append(x)
            x = F.avg_pool1d(x, 2)
        for conv, s in zip(self.up, reversed(skips)):
            x = F.interpolate(x, scale_factor=2)
            x = x + F.leaky_relu(s, 0.1, inplace=True)
            x = conv(x)
        return x
# %%
unet = UNet1d()
signal = torch.randn(3, 1, 16)
loss = F.mse_loss(unet(signal), signal)
loss.backward()
