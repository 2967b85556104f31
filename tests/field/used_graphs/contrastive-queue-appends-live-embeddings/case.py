# %%
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class SpeakerEncoder(nn.Module):
    def __init__(self, n_mel=10, dim=4):
        super().__init__()
        self.gru = nn.GRU(n_mel, 12, batch_first=True)
        self.proj = nn.Linear(12, dim)

    def forward(self, mel):
        _, h = self.gru(mel)
        return F.normalize(self.proj(h[-1]), dim=-1)


class NegativeQueue:
    def __init__(self, maxlen):
        self.items = deque(maxlen=maxlen)

    def push(self, z):
        # 先进先出,只保留最近几个 batch
        self.items.append(z)

    def all(self):
        return torch.cat(list(self.items)) if self.items else None
# %%
def info_nce(a, b, extra, tau=0.1):
    cand = b if extra is None else torch.cat([b, extra])
    sim = a @ cand.t()
    sim /= tau
    return F.cross_entropy(sim, torch.arange(len(a)))


def run_batch(encoder, queue, first, second):
    za, zb = encoder(first), encoder(second)
    loss = info_nce(za, zb, queue.all())
    queue.push(zb)
    return loss
# %%
encoder, queue = SpeakerEncoder(), NegativeQueue(maxlen=3)
opt = torch.optim.SGD(encoder.parameters(), lr=0.1)
clips = torch.randn(4, 2, 5, 7, 10)     # 批次, 视角, 说话人, 帧, mel
curve = []
for views in clips:
    loss = run_batch(encoder, queue, *views)
    opt.zero_grad()
    loss.backward()
    opt.step()
    curve.append(loss.item())
print(curve)
