# %%
import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(6, 2), nn.Linear(2, 6)
# %%
optimizer = torch.optim.Adam([encoder, decoder], lr=0.01)
# %%
x = torch.randn(8, 6)
loss = (decoder(torch.relu(encoder(x))) - x).square().mean()
loss.backward()
optimizer.step()
