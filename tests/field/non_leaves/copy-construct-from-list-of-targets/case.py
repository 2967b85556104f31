# %%
import torch
import torch.nn as nn
from collections import namedtuple

torch.manual_seed(0)
Sample = namedtuple("Sample", "state reward")
memory = [Sample(torch.randn(3), torch.rand(1)) for _ in range(4)]
net = nn.Linear(3, 1)
# %%
def to_batch(samples):
    states = torch.stack([s.state for s in samples])
    rewards = []
    for sample in samples:
        reward = sample.reward
        rewards.append(torch.tensor(reward))
    return states, torch.stack(rewards)

states, targets = to_batch(memory)
# %%
loss = nn.functional.smooth_l1_loss(net(states), targets)
loss.backward()
