# %%
import torch

torch.manual_seed(0)


class Oscillator:
    def __init__(self, k, c, m):
        self.log_theta = torch.tensor([k, c, m]).log().requires_grad_()
        self.k, self.c, self.m = self.log_theta.exp()
        for p in (self.k, self.c, self.m):
            p.retain_grad()

    def trajectory(self, steps=30, dt=0.1):
        x, v = torch.tensor(1.0), torch.tensor(0.0)
        xs = []
        for _ in range(steps):
            acc = -(self.k * x + self.c * v) / self.m
            v = v + dt * acc
            x = x + dt * v
            xs.append(x)
        return torch.stack(xs)
# %%
truth = Oscillator(2.0, 0.3, 1.0).trajectory().detach()
truth += 0.01 * torch.randn(30)
model = Oscillator(1.5, 0.2, 1.1)
misfit = (model.trajectory() - truth).pow(2).mean()
misfit.backward()
# %%
# which constant matters most?
sens = {name: getattr(model, name).grad for name in ("k", "c", "m")}
print(sens)
