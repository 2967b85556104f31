# %%
import torch
from torch.func import vmap

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
torch.func.replace_all_batch_norm_modules_(model)
# %%
batches = torch.randn(5, 2, 3)
outputs = vmap(model)(batches)
