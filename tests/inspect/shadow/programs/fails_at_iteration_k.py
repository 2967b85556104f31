# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
def train(steps, warmup=40):
    for step in range(steps):
        y = torch.sigmoid(net(torch.randn(4, 3)))
        if step >= warmup:
            z = y.mul(2).exp()  # saved
            z -= 1  # wrote
        else:
            z = y
        loss = z.mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
# %%
train(100)
