# %%
import math
import torch


class Pose:
    def __init__(self, degrees, trans):
        self.angles = (torch.tensor(degrees) * math.pi / 180).requires_grad_()
        self.trans = torch.tensor(trans, requires_grad=True)

    def apply(self, pts):
        c, s = self.angles.cos(), self.angles.sin()
        rot = torch.stack([torch.stack([c, -s]), torch.stack([s, c])])
        return pts @ rot.T + self.trans

    def grads(self):
        return {"angles": self.angles.grad, "trans": self.trans.grad}
# %%
pose = Pose(30.0, [0.1, -0.2])
pts = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
err = (pose.apply(pts) - pts).pow(2).sum()
err.backward()
# %%
g = pose.grads()
