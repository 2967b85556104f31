# %%
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.norm2 = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, 2, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        y = self.norm1(x)
        x += self.attn(y, y, y, need_weights=False)[0]
        x = x + self.ff(self.norm2(x))
        return x


class TinyGPT(nn.Module):
    def __init__(self, vocab=11, dim=8, depth=2):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.zeros(1, 16, dim))
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.tok(ids)
        x += self.pos[:, :ids.size(1)]
        for blk in self.blocks:
            x = blk(x)
        return self.head(x)
# %%
torch.manual_seed(0)
model = TinyGPT()
ids = torch.randint(0, 11, (2, 7))
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
# %%
logits = model(ids[:, :-1])
loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
opt.zero_grad()
loss.backward()
opt.step()
