# %%
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
encoder = nn.Linear(6, 3)

@torch.no_grad()
def encode(batch):
    z = encoder(batch)
    return F.normalize(z, dim=1)
# %%
def nt_xent(a, b, t=0.5):
    sim = a @ b.t() / t
    return F.cross_entropy(sim, torch.arange(len(a)))
# %%
imgs = torch.randn(8, 6)
view1 = imgs + 0.1 * torch.randn_like(imgs)
view2 = imgs + 0.1 * torch.randn_like(imgs)
opt = torch.optim.SGD(encoder.parameters(), lr=0.1)
opt.zero_grad()
loss = nt_xent(encode(view1), encode(view2))
loss.backward()
opt.step()
