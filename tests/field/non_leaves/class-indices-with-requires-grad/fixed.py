# %%
import torch


class Spline:
    def __init__(self, xs, ys):
        self.xs = torch.tensor(xs, dtype=torch.float32, requires_grad=True)
        self.ys = torch.tensor(ys, requires_grad=True)

    def __call__(self, t):
        w = torch.softmax(-(t[:, None] - self.xs) ** 2, dim=1)
        return w @ self.ys
# %%
curve = Spline([0, 2, 5, 9], [0.0, 1.0, 0.5, 2.0])
knots = curve.xs
loss = (curve(torch.linspace(0, 9, 7)) - 1.0).pow(2).sum()
loss.backward()
