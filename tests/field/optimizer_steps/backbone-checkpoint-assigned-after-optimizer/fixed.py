# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class Keypoints(nn.Module):
    def __init__(self, n_points=3):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1), nn.ReLU())
        self.heat = nn.Conv2d(4, n_points, 1)

    def forward(self, img):
        p = self.heat(self.backbone(img)).flatten(2).softmax(-1)
        grid = torch.linspace(-1, 1, img.shape[-1])
        xy = torch.cartesian_prod(grid, grid)
        return p @ xy


def save_backbone(net):
    return {k: v.clone() for k, v in net.backbone.state_dict().items()}
# %%
checkpoint = save_backbone(Keypoints(n_points=17))
net = Keypoints()
groups = [
    {"params": net.backbone.parameters(), "lr": 0.05},
    {"params": net.heat.parameters(), "lr": 0.5},
]
optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
# %%
# assign=True: no second copy of the weights in memory
missing = net.backbone.load_state_dict(checkpoint)
print(missing)
# %%
img, xy = torch.rand(4, 1, 8, 8), torch.rand(4, 3, 2) * 2 - 1
for _ in range(4):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(img), xy)
    loss.backward()
    optimizer.step()
print(loss.item())
