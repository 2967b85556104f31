# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class DelayLine:
    """The last `length` samples of each channel, newest last."""

    def __init__(self, channels, length):
        self.memory = torch.zeros(channels, 4 * length)
        self.length, self.end = length, length

    @property
    @torch.no_grad()
    def window(self):
        return self.memory[:, self.end - self.length:self.end]

    def push(self, sample):
        self.end += 1
        newest = self.window[:, -1]
        newest.copy_(sample)


class EchoFilter(nn.Module):
    def __init__(self, channels=2, length=5):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(channels))
        self.taps = nn.Parameter(0.3 * torch.randn(channels, length))
        self.length = length

    def forward(self, signal):
        line = DelayLine(signal.size(0), self.length)
        out = []
        for t in range(signal.size(1)):
            line.push(self.gain * signal[:, t])
            out.append((self.taps * line.window.clone()).sum(dim=1))
        return torch.stack(out, dim=1)

# %%
t = torch.linspace(0, 1, 12)
dry = torch.stack([torch.sin(9 * t), torch.cos(7 * t)])
wet = dry.roll(2, dims=1)
wet *= 0.5

# %%
echo = EchoFilter()
optimizer = torch.optim.SGD(echo.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    error = (echo(dry) - wet).pow(2).mean()
    error.backward()
    optimizer.step()
print(error.item())
