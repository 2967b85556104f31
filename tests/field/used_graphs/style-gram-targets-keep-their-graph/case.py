# %%
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
convs = nn.ModuleList([nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)])
for conv in convs:
    nn.init.kaiming_normal_(conv.weight)


def features(img):
    maps = []
    for conv in convs:
        img = F.relu(conv(img))
        maps.append(img)
        img = F.avg_pool2d(img, 2)
    return maps


def gram(fmap):
    b, c, h, w = fmap.shape
    flat = fmap.view(c, h * w)
    g = flat @ flat.t()
    g /= h * w
    return g
# %%
style_img = torch.rand(1, 3, 16, 16)
content_img = torch.rand(1, 3, 16, 16)
content_img[..., 4:12, 4:12] *= 0.3

style_targets = [gram(f) for f in features(style_img)]
with torch.no_grad():
    content_target = features(content_img)[-1]
# %%
# 优化的是图像本身,不是网络
canvas = torch.rand(1, 3, 16, 16).requires_grad_()
optimizer = torch.optim.Adam([canvas], lr=0.02)
for step in range(4):
    maps = features(canvas)
    content_loss = F.mse_loss(maps[-1], content_target)
    style_loss = sum(F.mse_loss(gram(f), t) for f, t in zip(maps, style_targets))
    loss = content_loss + 10 * style_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, content_loss.item(), style_loss.item())
