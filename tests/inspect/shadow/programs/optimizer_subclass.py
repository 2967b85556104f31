# %%
import torch
from torch import nn
torch.manual_seed(0)


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, beta=0.9):
        super().__init__(params, dict(lr=lr, beta=beta))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                p.add_(m.mul(group["beta"]).add(p.grad).sign(), alpha=-group["lr"])  # wrote
                m.lerp_(p.grad, 1 - group["beta"])


# %%
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = Lion(net.parameters())
x = torch.randn(5, 3)
a = net(x)  # saved
b = a.pow(2).mean()
a.mean().backward(retain_graph=True)
opt.step()
b.backward()
