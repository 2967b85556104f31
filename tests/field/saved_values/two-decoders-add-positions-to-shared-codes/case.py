# %%
import torch
from torch import nn

torch.manual_seed(0)


class PatchDecoder(nn.Module):
    def __init__(self, n_tokens, dim, patch_dim):
        super().__init__()
        self.de_pos = nn.Parameter(0.02 * torch.randn(1, n_tokens, dim))
        self.to_pixel = nn.Sequential(nn.Linear(dim, 2 * dim), nn.Tanh(), nn.Linear(2 * dim, patch_dim))

    def forward(self, token):
        token += self.de_pos
        return self.to_pixel(token)
# %%
class RGBDTokenizer(nn.Module):
    def __init__(self, n_tokens=6, dim=8, n_codes=16):
        super().__init__()
        self.encoder = nn.Linear(12, dim)
        self.codebook = nn.Embedding(n_codes, dim)
        self.decoders = nn.ModuleDict({
            "rgb": PatchDecoder(n_tokens, dim, 12),
            "depth": PatchDecoder(n_tokens, dim, 4),
        })

    def quantize(self, z):
        idx = torch.cdist(z.detach(), self.codebook.weight.detach()).argmin(-1)
        q = self.codebook(idx)
        commit = (z - q.detach()).pow(2).mean() + (z.detach() - q).pow(2).mean()
        return z + (q - z).detach(), commit

    def forward(self, patches):
        quant, commit = self.quantize(self.encoder(patches))
        recon = {}
        for name, decoder in self.decoders.items():
            recon[name] = decoder(quant)
        return recon, commit
# %%
model = RGBDTokenizer()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
batch = {"rgb": torch.rand(4, 6, 12), "depth": torch.rand(4, 6, 4)}
# %%
optimizer.zero_grad()
recon, commit = model(batch["rgb"])
loss = commit + sum((recon[k] - batch[k]).abs().mean() for k in recon)
loss.backward()
optimizer.step()
print(loss.item())
