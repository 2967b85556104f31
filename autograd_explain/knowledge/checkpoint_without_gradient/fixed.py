# %%
import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
encoder = torch.nn.Sequential(torch.nn.Linear(5, 6), torch.nn.ReLU())
head = torch.nn.Linear(6, 1)
batch = torch.randn(3, 5)
# %%
hidden = checkpoint(encoder, batch, use_reentrant=False)
head(hidden).sum().backward()
