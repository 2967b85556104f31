# %%
import torch

torch.manual_seed(0)


def initial_homography(dx, dy):
    entries = [1.0, 0.0, dx, 0.0, 1.0, dy, 0.0, 0.0, 1.0]
    H = torch.tensor(entries, requires_grad=True)
    return H.reshape(3, 3)


def project(H, points):
    ones = torch.ones(len(points), 1)
    p = torch.cat([points, ones], dim=1) @ H.t()
    return p[:, :2] / p[:, 2:]


def reprojection_error(H, src, dst):
    err = project(H, src)
    err -= dst
    return err.pow(2).sum(dim=1).mean()
# %%
# 対応点: 真の変換に少しノイズを加えたもの
true_H = torch.tensor([[1.1, 0.05, 0.3], [-0.04, 0.95, -0.2], [0.02, 0.01, 1.0]])
src = torch.rand(12, 2) * 2 - 1
dst = project(true_H, src)
dst += 0.01 * torch.randn(12, 2)
# %%
H = initial_homography(0.2, -0.1)
error = reprojection_error(H, src, dst)
error.backward()
dH = H.grad
print(error.item(), dH)
