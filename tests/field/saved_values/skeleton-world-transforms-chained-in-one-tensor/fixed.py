# %%
from dataclasses import dataclass, field

import torch

torch.manual_seed(0)


def axis_angle_to_matrix(aa):
    x, y, z = aa[..., 0], aa[..., 1], aa[..., 2]
    o = torch.zeros_like(x)
    skew = torch.stack([o, -z, y, z, o, -x, -y, x, o], -1).reshape(*aa.shape[:-1], 3, 3)
    return torch.linalg.matrix_exp(skew)
# %%
@dataclass
class ArmRig:
    offsets: torch.Tensor
    parents: tuple = (-1, 0, 1, 1, 3)
    pose: torch.Tensor = field(default=None)

    def __post_init__(self):
        if self.pose is None:
            self.pose = (0.1 * torch.randn(2, len(self.parents), 3)).requires_grad_()

    def local_transforms(self):
        rot = axis_angle_to_matrix(self.pose)
        top = torch.cat([rot, self.offsets.expand(rot.shape[0], -1, -1).unsqueeze(-1)], -1)
        bottom = torch.tensor([0., 0., 0., 1.]).expand(*rot.shape[:2], 1, 4)
        return torch.cat([top, bottom], dim=-2)

    def joints(self):
        local = self.local_transforms()
        world = [local[:, 0]]
        for j in range(1, len(self.parents)):
            world.append(torch.matmul(world[self.parents[j]], local[:, j]))
        return torch.stack(world, dim=1)[..., :3, 3]
# %%
rig = ArmRig(offsets=torch.randn(5, 3))
target = torch.randn(2, 5, 3)
optimizer = torch.optim.Adam([rig.pose], lr=0.05)
# %%
for step in range(5):
    optimizer.zero_grad()
    loss = (rig.joints() - target).norm(dim=-1).mean()
    loss.backward()
    optimizer.step()
print(loss.item())
