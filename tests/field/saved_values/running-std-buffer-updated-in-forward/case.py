# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class RunningNorm(nn.Module):
    def __init__(self, n, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running_mean", torch.zeros(n))
        self.register_buffer("running_std", torch.ones(n))

    def forward(self, x):
        y = (x - self.running_mean) / self.running_std
        if self.training:
            mean, std = x.detach().mean(0), x.detach().std(0)
            self.running_mean.lerp_(mean, self.momentum)
            self.running_std.mul_(1 - self.momentum).add_(std, alpha=self.momentum)
        return y
# %%
model = nn.Sequential(nn.Linear(3, 4), RunningNorm(4), nn.Linear(4, 1))
x, y = torch.randn(16, 3), torch.randn(16, 1)
loss = (model(x) - y).abs().mean()
loss.backward()
