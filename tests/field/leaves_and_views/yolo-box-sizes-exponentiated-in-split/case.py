# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class BoxHead(nn.Module):
    def __init__(self, channels=8, anchors=((1.0, 1.5), (2.0, 1.0))):
        super().__init__()
        self.register_buffer("anchors", torch.tensor(anchors))
        self.pred = nn.Conv2d(channels, 5 * len(anchors), 1)

    def decode(self, raw):
        b, _, h, w = raw.shape
        raw = raw.view(b, len(self.anchors), 5, h, w).permute(0, 3, 4, 1, 2)
        xy, wh, obj = raw.split([2, 2, 1], dim=-1)
        gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        cell = torch.stack([gx, gy], dim=-1).unsqueeze(2)
        xy = xy.sigmoid() + cell
        wh.clamp_(max=4.0)         # 防止 exp 溢出
        wh = wh.exp() * self.anchors
        return torch.cat([xy, wh], dim=-1), obj.squeeze(-1)

    def forward(self, feat):
        return self.decode(self.pred(feat))

# %%
backbone = nn.Sequential(
    nn.Conv2d(3, 8, 3, stride=2, padding=1),
    nn.BatchNorm2d(8),
    nn.SiLU(inplace=True),
)
head = BoxHead()
images = torch.rand(2, 3, 8, 8)
target = torch.tensor([1.5, 2.0, 2.0, 1.2]).expand(2, 4, 4, 2, 4)
has_object = torch.zeros(2, 4, 4, 2)
has_object[:, 2, 1, 0] = 1

# %%
optimizer = torch.optim.SGD([*backbone.parameters(), *head.parameters()], lr=0.01)
box, obj = head(backbone(images))
box_loss = ((box - target).abs().sum(-1) * has_object).sum() / has_object.sum()
obj_loss = F.binary_cross_entropy_with_logits(obj, has_object)
loss = box_loss + obj_loss
optimizer.zero_grad()
loss.backward()
optimizer.step()
print(loss.item())
