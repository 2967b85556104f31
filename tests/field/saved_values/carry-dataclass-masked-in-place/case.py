# %%
from dataclasses import dataclass
import torch
import torch.nn as nn

torch.manual_seed(0)

@dataclass
class Carry:
    h: torch.Tensor
    total: torch.Tensor

cell = nn.Linear(7, 5)
head = nn.Linear(5, 1)

def step(carry, x, alive):
    carry.h = torch.tanh(cell(torch.cat([x, carry.h], dim=1)))
    carry.h.mul_(alive.unsqueeze(1))
    carry.total = carry.total + head(carry.h).sum()
    return carry
# %%
xs = torch.randn(4, 3, 2)
alive = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0], [1, 0, 0]]).float()
carry = Carry(torch.zeros(3, 5), torch.zeros(()))
for x, a in zip(xs, alive):
    carry = step(carry, x, a)
loss = carry.total ** 2
loss.backward()
