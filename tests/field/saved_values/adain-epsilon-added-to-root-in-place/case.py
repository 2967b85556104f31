# %%
import torch
import torch.nn as nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(6, 6, 3, padding=1))
decoder = nn.Sequential(nn.Conv2d(6, 6, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(6, 3, 3, padding=1))
for p in encoder.parameters():
    p.requires_grad_(False)

# %%
def moments(feat, eps=1e-5):
    n, c = feat.shape[:2]
    flat = feat.reshape(n, c, -1)
    mean = flat.mean(dim=2)
    std = flat.var(dim=2).sqrt().add_(eps)
    return mean.view(n, c, 1, 1), std.view(n, c, 1, 1)


def whiten(img, eps=1e-5):
    mean = img.mean(dim=(2, 3), keepdim=True)
    out = img - mean
    out /= out.var(dim=(2, 3), keepdim=True).add_(eps).sqrt_()
    return out


def adain(content, style):
    (mc, sc), (ms, ss) = moments(content), moments(style)
    return (content - mc) / sc * ss + ms

# %%
content, style = whiten(torch.rand(2, 3, 8, 8)), whiten(torch.rand(2, 3, 8, 8))
opt = torch.optim.Adam(decoder.parameters(), lr=1e-3)

target = adain(encoder(content), encoder(style))
stylised = decoder(target)
feat = encoder(stylised)
content_loss = (feat - target).pow(2).mean()
mean_f, std_f = moments(feat)
mean_s, std_s = moments(encoder(style))
style_loss = (mean_f - mean_s).pow(2).mean() + (std_f - std_s).pow(2).mean()
loss = content_loss + 10 * style_loss
opt.zero_grad()
loss.backward()
opt.step()
