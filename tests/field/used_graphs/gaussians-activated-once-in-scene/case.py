# %%
from dataclasses import dataclass, field
import torch

torch.manual_seed(0)


@dataclass
class Scene:
    means: torch.Tensor
    log_scales: torch.Tensor
    logits: torch.Tensor
    colors: torch.Tensor
    activated: dict = field(init=False)

    def __post_init__(self):
        for p in self.trainable():
            p.requires_grad_(True)
        self.activated = {
            "scales": self.log_scales.exp(),
            "opacities": self.logits.sigmoid(),
        }

    def trainable(self):
        return [self.means, self.log_scales, self.logits, self.colors]

    @classmethod
    def random(cls, n):
        return cls(torch.rand(n, 2), torch.full((n,), -1.5), torch.zeros(n), torch.rand(n, 3))
# %%
def rasterize(pixels, means, scales, opacities, colors):
    d2 = (pixels[:, None] - means[None]).square().sum(-1)
    weight = opacities * torch.exp(-0.5 * d2 / scales.square())
    return (weight[..., None] * colors).sum(dim=1)


axis = torch.linspace(0, 1, 12)
pixels = torch.cartesian_prod(axis, axis)
photo = torch.stack([pixels[:, 0], pixels[:, 1], 1 - pixels[:, 0]], dim=-1)
# %%
scene = Scene.random(20)
opt = torch.optim.SGD(scene.trainable(), lr=0.05)
history = torch.zeros(4)
for it in range(4):
    image = rasterize(pixels, scene.means, scene.activated["scales"], scene.activated["opacities"], scene.colors)
    loss = (image - photo).abs().mean() + 0.01 * scene.activated["opacities"].mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    history[it] = loss.item()
print(history)
