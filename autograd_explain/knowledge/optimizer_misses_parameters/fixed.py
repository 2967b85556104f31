# %%
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
# five classes now
model[2] = nn.Linear(4, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
# %%
x, labels = torch.randn(20, 3), torch.randint(0, 5, (20,))
for epoch in range(3):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), labels)
    loss.backward()
    optimizer.step()
