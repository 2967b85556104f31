# %%
import torch
from torch import nn
torch.manual_seed(0)
layers = [nn.Linear(4, 4) for _ in range(3)]
opts = [torch.optim.SGD(l.parameters(), lr=0.05, momentum=0.9) for l in layers]


def forward(x):
    losses = []
    for layer in layers:
        x = torch.relu(layer(x))  # saved
        losses.append(x.pow(2).mean())
    return losses


# %%
losses = forward(torch.randn(2, 4))
for i, loss in enumerate(losses):
    loss.backward(retain_graph=True)
    opts[i].step()  # wrote
