# %%
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
features, stars = torch.randn(16, 4), torch.randint(1, 6, (16, 1)).float()
# %%
for epoch in range(3):
    optimizer.zero_grad()
    rating = model(features)
    loss = (rating - stars).square().mean()
    loss.backward()
    optimizer.step()
