# %%
import torch
from torch.func import vmap

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
# %%
batches = torch.randn(5, 2, 3)
outputs = vmap(model)(batches)
