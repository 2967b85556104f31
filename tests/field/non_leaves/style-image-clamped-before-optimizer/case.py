# %%
import torch
import torch.nn.functional as F

torch.manual_seed(0)
content = torch.rand(1, 3, 6, 6)
style = torch.rand(1, 3, 6, 6)

def gram(x):
    f = x.flatten(2)
    return f @ f.transpose(1, 2) / f.size(-1)

def start_image(content, noise=0.05):
    img = content + noise * torch.randn_like(content)
    img.requires_grad_(True)
    return img.clamp(0, 1)
# %%
canvas = start_image(content)
opt = torch.optim.Adam([canvas], lr=0.02)
history = []
for it in range(3):
    opt.zero_grad()
    loss = F.mse_loss(canvas, content) + 10 * F.mse_loss(gram(canvas), gram(style))
    loss.backward()
    opt.step()
    history.append(loss.item())
