# %%
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
loader = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(3)]
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
running = 0.0
history = []
for i, (xb, yb) in enumerate(loader):
    sgd.zero_grad()
    pred = net(xb).tanh()
    loss = (pred - yb).pow(2).mean()
    running = running + loss
    running.backward()
    sgd.step()
    history.append(float(running) / (i + 1))
