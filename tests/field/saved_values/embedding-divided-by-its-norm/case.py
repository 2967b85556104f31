# %%
import torch
import torch.nn as nn

torch.manual_seed(0)
table = nn.Embedding(9, 4)

def lookup(ids, unit=True):
    emb = table(ids)
    if unit:
        emb.div_(emb.norm(dim=-1, keepdim=True))
    return emb
# %%
anchor, pos, neg = torch.randint(0, 9, (3, 6))
a, p, n = (lookup(i) for i in (anchor, pos, neg))
loss = nn.functional.triplet_margin_loss(a, p, n)
loss.backward()
