# %%
import torch, math
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)


class Attn(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.register_buffer("mask", torch.tril(torch.ones(256, 256)).bool())

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.h, C // self.h).transpose(1, 2) for t in (q, k, v))
        a = q @ k.transpose(-2, -1) / math.sqrt(C // self.h)
        a = a.masked_fill(~self.mask[:T, :T], float("-inf"))
        a = F.softmax(a, -1)  # saved
        if self.training:
            a *= (torch.rand_like(a) > 0.1)  # wrote
        return self.proj((a @ v).transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = Attn(d, h)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, vocab=1000, d=384, h=6, n=6):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.pos = nn.Parameter(torch.zeros(256, d))
        self.blocks = nn.ModuleList([Block(d, h) for _ in range(n)])
        self.head = nn.Linear(d, vocab)

    def forward(self, idx):
        x = self.tok(idx) + self.pos[: idx.shape[1]]
        for b in self.blocks:
            x = b(x)
        return self.head(x)


# %%
net = GPT()
opt = torch.optim.AdamW(net.parameters(), lr=3e-4)
# %%
def batch():
    x = torch.randint(0, 1000, (4, 65))
    return x[:, :-1], x[:, 1:]
for it in range(3):
    x, y = batch()
    logits = net(x)
    loss = F.cross_entropy(logits.view(-1, 1000), y.reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
