# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


def rotate(q, pts):
    w, v = q[:, :1], q[:, 1:]
    t = 2 * torch.cross(v, pts, dim=1)
    return pts + w * t + torch.cross(v, t, dim=1)


def canonical(q):
    """same rotation, but w >= 0"""
    back = q[:, 0] < 0
    q = torch.where(back[:, None], -q, q)
    return q
# %%
class PoseRecorder:
    def __init__(self):
        self.rows = []

    @torch.no_grad()
    def log(self, step, quat, trans):
        self.rows.append((step, *self._row(quat), *trans.mean(0).tolist()))

    def _row(self, quat):
        mean = canonical(quat).mean(0)
        mean /= mean.norm()
        return mean.tolist()


class PoseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 7)

    def forward(self, feats):
        out = self.fc(feats)
        return F.normalize(out[:, :4], dim=1), out[:, 4:]
# %%
net, rec = PoseNet(), PoseRecorder()
feats, pts, goal = torch.randn(10, 6), torch.randn(10, 3), torch.randn(10, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    q, trans = net(feats)
    loss = (rotate(q, pts) + trans - goal).pow(2).mean()
    rec.log(step, q, trans)
    opt.zero_grad()
    loss.backward()
    opt.step()
