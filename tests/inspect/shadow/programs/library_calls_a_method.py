# %%
import contextlib
import torch
from torch import nn

torch.manual_seed(0)


class Phase:
    def __init__(self, width):
        self.net = nn.Linear(width, width)

    def __enter__(self):
        hidden = torch.sigmoid(self.net(torch.randn(2, 4)))  # saved
        hidden += 1  # wrote
        hidden.sum().backward()

    def __exit__(self, *raised):
        return False


# %%
phase = Phase(4)
with contextlib.ExitStack() as stack:
    stack.enter_context(phase)
