# %%
import torch
from torch import nn
torch.manual_seed(0)
emb = nn.Embedding(6, 4, max_norm=0.5)
proj = nn.Linear(4, 4)
ids, neg = torch.tensor([0, 1, 2]), torch.tensor([3, 4, 5])
# %%
scores = proj(torch.ones(3, 4)) @ emb.weight.t()  # saved
pos = emb(ids)  # wrote
loss = scores.sum() + (pos * emb(neg)).sum()
loss.backward()
