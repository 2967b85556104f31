# %%
import random
from collections import deque

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)


class MemoryCritic(nn.Module):
    def __init__(self, n_obs=3, hidden=6):
        super().__init__()
        self.memory = nn.GRUCell(n_obs, hidden)
        self.value = nn.Linear(hidden, 1)

    def start(self):
        return torch.zeros(1, self.memory.hidden_size)

    def forward(self, obs, state):
        state = self.memory(obs, state)
        return self.value(state).squeeze(-1), state
# %%
class Replay:
    def __init__(self, size):
        self.items = deque(maxlen=size)

    def push(self, **item):
        self.items.append(item)

    def sample(self, k):
        chosen = random.sample(list(self.items), k)
        return {key: torch.cat([c[key] for c in chosen]) for key in chosen[0]}


def collect(critic, replay, steps=12):
    state = critic.start()
    for t in range(steps):
        obs = torch.randn(1, 3)
        _, nxt = critic(obs, state)
        replay.push(obs=obs, state=state.detach(), target=obs.sum(dim=1) + 0.1 * t)
        state = nxt
# %%
critic, replay = MemoryCritic(), Replay(100)
opt = torch.optim.RMSprop(critic.parameters(), lr=0.01)
collect(critic, replay)
td = []
for update in range(5):
    batch = replay.sample(8)
    value, _ = critic(batch["obs"], batch["state"])
    loss = (value - batch["target"]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    td.append(loss.item())
print(td)
