# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class LossBalancer:
    def __init__(self, beta=0.9):
        self.beta = beta
        self.avg = {}

    def __call__(self, losses):
        total = 0.0
        for name, value in losses.items():
            scale = self.avg.get(name, 1.0)
            total = total + value / scale
            self._update(name, value)
        return total / len(losses)

    def _update(self, name, value):
        old = self.avg.get(name)
        if old is None:
            self.avg[name] = value.detach()
        else:
            self.avg[name] = self.beta * old + (1 - self.beta) * value
# %%
class DepthAndNormals(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU())
        self.depth = nn.Conv2d(6, 1, 1)
        self.normal = nn.Conv2d(6, 3, 1)

    def losses(self, batch):
        h = self.trunk(batch["rgb"])
        n = nn.functional.normalize(self.normal(h), dim=1)
        return {
            "depth": nn.functional.l1_loss(self.depth(h), batch["depth"]),
            "normal": (1 - (n * batch["normal"]).sum(1)).mean(),
        }
# %%
net, balance = DepthAndNormals(), LossBalancer()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
sizes = {"rgb": 3, "depth": 1, "normal": 3}
for it in range(5):
    batch = {k: torch.rand(2, c, 6, 6) for k, c in sizes.items()}
    loss = balance(net.losses(batch))
    opt.zero_grad()
    loss.backward()
    opt.step()
print({k: float(v) for k, v in balance.avg.items()})
