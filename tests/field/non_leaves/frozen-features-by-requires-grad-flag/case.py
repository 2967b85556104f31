# %%
import torch
import torch.nn as nn

torch.manual_seed(0)
backbone, head = nn.Linear(5, 4), nn.Linear(4, 2)
x, y = torch.randn(7, 5), torch.randint(0, 2, (7,))

def extract(x):
    feats = torch.relu(backbone(x))
    feats.requires_grad = False
    return feats
# %%
loss = nn.functional.cross_entropy(head(extract(x)), y)
loss.backward()
print(backbone.weight.grad)
