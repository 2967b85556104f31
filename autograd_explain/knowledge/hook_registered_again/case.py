# %%
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(20, 4), nn.Flatten(), nn.Linear(12, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randint(0, 20, (16, 3)), torch.randn(16, 1)
# %%
def train_step(x, y):
    # the embedding learns at half the speed of the rest
    model[0].weight.register_hook(lambda g: 0.5 * g)
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


losses = [train_step(x, y) for _ in range(8)]
