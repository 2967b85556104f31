# %%
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 3))
image = torch.rand(1, 8)
# %%
image.retain_grad()
score = net(image)[0, 2]
score.backward()
saliency = image.grad.abs()
print(saliency)
