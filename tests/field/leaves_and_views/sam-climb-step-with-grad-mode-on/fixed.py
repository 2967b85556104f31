# %%
import torch
from torch import nn


class SAM:
    """Sharpness-aware minimisation around any torch optimizer."""

    def __init__(self, params, base, rho=0.05, **kwargs):
        self.params = list(params)
        self.base = base(self.params, **kwargs)
        self.rho, self.shift = rho, {}

    def grad_norm(self):
        return torch.stack([p.grad.norm() for p in self.params]).norm()

    @torch.no_grad()
    def climb(self):
        scale = self.rho / (self.grad_norm() + 1e-12)
        for p in self.params:
            self.shift[p] = p.grad * scale
            p.add_(self.shift[p])

    @torch.no_grad()
    def descend(self):
        for p in self.params:
            p.sub_(self.shift[p])
        self.base.step()

    def zero_grad(self):
        self.base.zero_grad()

# %%
torch.manual_seed(0)
x = torch.randn(30, 4)
y = (x[:, 0] * x[:, 1] > 0).float().unsqueeze(1)
net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 1))
criterion = nn.BCEWithLogitsLoss()
sam = SAM(net.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)

# %%
def closure():
    sam.zero_grad()
    loss = criterion(net(x), y)
    loss.backward()
    return loss


epoch_loss = torch.zeros(5)
for epoch in range(5):
    epoch_loss[epoch] += closure().item()
    sam.climb()
    closure()
    sam.descend()
print(epoch_loss)
