# %%
import torch
from torch import nn
torch.manual_seed(0)


class Stack(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])])
        self.acts = [torch.tanh, torch.sigmoid, torch.exp]

    def forward(self, x):
        states = []
        for layer, act in zip(self.layers, self.acts):
            x = act(layer(x))
            states.append(x)
        return states


def normalise(states):
    for s in states:
        size = s.norm(dim=-1, keepdim=True)  # saved
        s /= size  # wrote
    return states


# %%
net = Stack([3, 4, 4, 2])
states = normalise(net(torch.rand(5, 3)))
loss = sum(s.sum() for s in states)
loss.backward()
