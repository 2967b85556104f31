# %%
import torch
from torch import nn

torch.manual_seed(0)


class Adapted(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, base.in_features) * 0.1)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.merged = False

    def merge(self):
        if not self.merged:
            self.base.weight.data += self.up @ self.down
            self.merged = True

    def unmerge(self):
        if self.merged:
            self.base.weight.data -= self.up @ self.down
            self.merged = False

    def forward(self, x):
        out = self.base(x)
        return out if self.merged else out + x @ self.down.T @ self.up.T


model = nn.Sequential(Adapted(nn.Linear(4, 8)), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
x, y = torch.randn(32, 4), torch.randn(32, 1)
# %%
for epoch in range(4):
    loss = (model(x[:24]) - y[:24]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model[0].merge()
    with torch.no_grad():
        error = (model(x[24:]) - y[24:]).abs().mean()
    print(epoch, error.item())
