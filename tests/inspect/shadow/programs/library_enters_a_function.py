# %%
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 4)


def work(batch, scale):
    hidden = torch.tanh(net(batch))  # saved
    hidden.mul_(scale)  # wrote
    return hidden.sum().backward()


# %%
with ThreadPoolExecutor(1) as pool:
    waiting = pool.submit(work, torch.randn(3, 4), 2.0)
print(waiting.result())
