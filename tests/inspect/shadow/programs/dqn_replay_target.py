# %%
import random
from collections import deque, namedtuple
import torch
from torch import nn
import torch.nn.functional as F
T = namedtuple("T", "s a r s2 d")


class Replay:
    def __init__(self, cap):
        self.buf = deque(maxlen=cap)

    def push(self, *a):
        self.buf.append(T(*a))

    def sample(self, n):
        return T(*(torch.stack(v) for v in zip(*random.sample(self.buf, n))))

    def __len__(self):
        return len(self.buf)


# %%
q = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
target = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
target.load_state_dict(q.state_dict())
opt = torch.optim.Adam(q.parameters())
mem = Replay(100)
eps = 0.3


def act(s):
    if random.random() < eps:
        return torch.tensor(random.randrange(2))
    with torch.no_grad():
        return q(s).argmax()


def learn(n=8):
    if len(mem) < n:
        return None
    b = mem.sample(n)
    values = q(b.s)
    scale = values.pow(2).mean()  # saved
    best = values.detach()
    best[range(n), b.a] = b.r + 0.9 * target(b.s2).max(1).values.detach() * (1 - b.d)  # wrote
    loss = F.huber_loss(values, best) + scale
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


# %%
s = torch.randn(4)
for step in range(30):
    a = act(s)
    s2, r, d = torch.randn(4), torch.randn(()), torch.tensor(float(random.random() < 0.1))
    mem.push(s, a, r, s2, d)
    s = s2
    learn()
