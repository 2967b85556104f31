# %%
import math
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, heads=2):
        super().__init__()
        self.heads, self.scale = heads, 1 / math.sqrt(dim // heads)
        self.qkv = nn.Linear(dim, dim * 3)
        self.out = nn.Linear(dim, dim)

    def forward(self, x, mask=None):
        b, n, d = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        att = (q @ k.transpose(-2, -1)) * self.scale
        if mask is not None:
            att = att.masked_fill(mask, float("-inf"))
        att = att.softmax(dim=-1)  # saved
        att *= 1.5  # wrote
        y = (att @ v).transpose(1, 2).reshape(b, n, d)
        return self.out(y)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.attn = Attention(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.norm(x))
        return x + self.mlp(x)


# %%
torch.manual_seed(0)
vit = nn.Sequential(*[Block(8) for _ in range(3)], nn.LayerNorm(8))
head = nn.Linear(8, 2)
tokens = torch.randn(2, 5, 8)
logits = head(vit(tokens).mean(dim=1))
loss = nn.functional.cross_entropy(logits, torch.tensor([0, 1]))
loss.backward()
