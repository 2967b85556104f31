# %%
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)


class SensorCalibration(nn.Module):
    # 反射率 = c2 * v^2 + c1 * v + c0

    def __init__(self):
        super().__init__()
        self.c0 = nn.Parameter(torch.zeros(()))
        self.c1 = nn.Parameter(torch.ones(()))
        self.c2 = nn.Parameter(torch.zeros(()))

    @property
    def coefficients(self):
        # 高次から順に
        return [getattr(self, f"c{k}") for k in (2, 1, 0)]

    def forward(self, volt):
        out = torch.zeros_like(volt)
        for c in self.coefficients:
            out = out * volt + c
        return out
# %%
volt = torch.linspace(0, 2, 30)
reflect = 0.4 * volt ** 2 + 0.9 * volt + 0.1
reflect += 0.01 * torch.randn(30)
calib = SensorCalibration()
opt = torch.optim.LBFGS(calib.parameters(), max_iter=10)


def closure():
    opt.zero_grad()
    loss = nn.functional.mse_loss(calib(volt), reflect)
    loss.backward()
    return loss


opt.step(closure)
# %%
# 表を作る
xs = np.linspace(0.0, 2.0, 5)
ys = np.polyval([c.item() for c in calib.coefficients], xs)
for v, r in zip(xs, ys):
    print(f"{v:.2f} V -> {r:.3f}")
