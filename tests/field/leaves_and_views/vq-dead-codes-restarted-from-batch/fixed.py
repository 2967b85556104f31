# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class VectorQuantizer(nn.Module):
    def __init__(self, n_codes=8, dim=3, patience=3):
        super().__init__()
        self.codes = nn.Embedding(n_codes, dim)
        self.register_buffer("age", torch.zeros(n_codes))
        self.patience = patience

    def forward(self, z):
        idx = torch.cdist(z, self.codes.weight).argmin(dim=1)
        e = self.codes(idx)
        vq_loss = F.mse_loss(e, z.detach()) + 0.25 * F.mse_loss(z, e.detach())
        self.track(idx, z)
        return z + (e - z).detach(), vq_loss

    def track(self, idx, z):
        self.age += 1
        self.age[idx] = 0
        dead = self.age >= self.patience
        if dead.any():
            self.restart(dead, z)

    def restart(self, dead, z):
        # move unused codes onto encoder outputs
        src = z[torch.arange(int(dead.sum())) % len(z)].detach()
        self.codes.weight.data[dead] = src
        self.age[dead] = 0
# %%
enc, dec, vq = nn.Linear(6, 3), nn.Linear(3, 6), VectorQuantizer()
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters(), *vq.parameters()], lr=2e-2)
data = torch.randn(40, 6)
for epoch in range(4):
    for x in data.split(10):
        q, vq_loss = vq(enc(x))
        loss = F.mse_loss(dec(q), x) + vq_loss
        opt.zero_grad()
        loss.backward()
        opt.step()
print(loss.item(), vq.age)
