# %%
import copy

import torch
from torch import nn

torch.manual_seed(0)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.head = nn.Linear(2, 1)

    def forward(self, x):
        hidden = torch.tanh(self.layer(x))
        self.last = hidden
        return self.head(hidden)
# %%
net = Encoder()
loss = net(torch.randn(5, 3)).square().mean()
loss.backward()
# %%
best = copy.deepcopy(net)
print(best.layer.weight.norm())
