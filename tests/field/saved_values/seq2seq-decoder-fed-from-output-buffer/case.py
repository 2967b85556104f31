# %%
import torch
from torch import nn

torch.manual_seed(0)


class Decoder(nn.Module):
    def __init__(self, dim=3, hidden=5):
        super().__init__()
        self.cell = nn.GRUCell(dim, hidden)
        self.proj = nn.Linear(hidden, dim)

    def forward(self, first, h, steps):
        outputs = torch.zeros(first.size(0), steps + 1, first.size(1))
        outputs[:, 0] = first
        for t in range(steps):
            h = self.cell(outputs[:, t], h)
            outputs[:, t + 1] = self.proj(h)
        return outputs[:, 1:]
# %%
dec = Decoder()
enc = nn.GRU(3, 5, batch_first=True)
src, tgt = torch.randn(4, 6, 3), torch.randn(4, 5, 3)
# %%
_, h_n = enc(src)
pred = dec(src[:, -1], h_n[0], steps=5)
loss = nn.functional.l1_loss(pred, tgt)
loss.backward()
