# %%
import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Scene:
    def __init__(self, height=8, width=8):
        # 图像习惯用 HWC,grid_sample 要用 CHW
        self.texture = torch.rand(height, width, 3, requires_grad=True).permute(2, 0, 1)
        self.light = torch.tensor([0.8, 0.9, 1.0], requires_grad=True)
        self.background = torch.zeros(3)

    def render(self, uv):
        colour = F.grid_sample(self.texture[None], uv[None], align_corners=True)[0]
        colour = colour * self.light[:, None, None]
        outside = (uv.abs() > 1).any(dim=-1)
        colour[:, outside] = self.background[:, None]
        return colour


def camera(angle, size=6):
    axis = torch.linspace(-1.1, 1.1, size)
    v, u = torch.meshgrid(axis, axis, indexing="ij")
    c, s = torch.cos(angle), torch.sin(angle)
    return torch.stack([c * u - s * v, s * u + c * v], dim=-1)
# %%
angles = torch.linspace(0, 0.6, 4)
photos = [torch.full((3, 6, 6), 0.5) for _ in angles]
for photo in photos:
    photo[0] *= 1.4
scene = Scene()
# %%
optimizer = torch.optim.Adam([
    {"params": scene.light, "lr": 1e-3},
    {"params": scene.texture, "lr": 5e-2},
])
for it in range(3):
    loss = sum(F.l1_loss(scene.render(camera(a)), p) for a, p in zip(angles, photos))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
