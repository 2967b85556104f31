# %%
import torch
from torch import nn

torch.manual_seed(0)
backbone, head = nn.Linear(6, 4), nn.Linear(4, 1)
x = torch.randn(5, 6)
# %%
with torch.no_grad():
    features = torch.relu(backbone(x))
# %%
loss = head(features).square().mean()
loss.backward()
print(head.weight.grad)
