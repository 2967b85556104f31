# %%
import torch
from torch import nn

torch.manual_seed(0)


class Extractor(nn.Module):
    """Small stand-in for VGG: returns the activations after every stage."""

    def __init__(self, widths=(3, 6, 8, 10)):
        super().__init__()
        self.stages = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.Softplus()) for a, b in zip(widths, widths[1:]))
        self.requires_grad_(False)

    def forward(self, img):
        for stage in self.stages:
            img = stage(img)
            yield img
# %%
def gram(act):
    flat = act.flatten(2)
    return flat @ flat.transpose(1, 2) / flat.shape[-1]


def balance(losses):
    logs = [l.log() for l in losses]
    mean = sum(logs) / len(logs)
    return sum((v - mean) ** 2 for v in logs)


def add_up(losses):
    total = losses[0]
    for l in losses[1:]:
        total += l
    return total
# %%
vgg = Extractor()
style_grams = [gram(a) for a in vgg(torch.rand(1, 3, 12, 12))]
canvas = torch.rand(1, 3, 12, 12, requires_grad=True)
optimizer = torch.optim.Adam([canvas], lr=0.02)
# %%
for step in range(4):
    optimizer.zero_grad()
    layer_losses = [(gram(a) - g).pow(2).mean() for a, g in zip(vgg(canvas), style_grams)]
    reg = balance(layer_losses)
    loss = add_up(layer_losses) + 0.01 * reg
    loss.backward()
    optimizer.step()
print(f"style {loss.item():.5f}")
