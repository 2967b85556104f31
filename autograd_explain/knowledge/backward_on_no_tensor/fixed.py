# %%
import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Linear(4, 3)
decoder = nn.Linear(3, 4)
x = torch.randn(8, 4)

# %%
code = encoder(x)
losses = [(decoder(code) - x).pow(2).mean(), 0.1 * code.pow(2).mean()]
sum(losses).backward()
