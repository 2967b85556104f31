# %%
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class SelfAttention(nn.Module):
    def __init__(self, dim=8, heads=2):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))

    def split(self, x):
        b, t, d = x.shape
        return x.view(b, t, self.heads, d // self.heads).transpose(1, 2)

    def forward(self, x, pad):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = q @ k.transpose(-2, -1)
        scores /= math.sqrt(q.size(-1))
        attn = F.softmax(scores, dim=-1)
        attn.masked_fill_(pad[:, None, None, :], 0.0)
        ctx = (attn @ v).transpose(1, 2).flatten(2)
        return ctx
# %%
mha = SelfAttention()
tokens = torch.randn(3, 5, 8)
lengths = torch.tensor([5, 3, 4])
pad = torch.arange(5)[None, :] >= lengths[:, None]
# %%
out = mha(tokens, pad)
loss = out.pow(2).mean()
loss.backward()
print(round(loss.item(), 4))
