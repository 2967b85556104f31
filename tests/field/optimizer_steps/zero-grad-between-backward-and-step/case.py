# %%
import torch
from torch import nn

torch.manual_seed(0)


class Trainer:
    def __init__(self, net, lr):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=lr)
        self.history = []

    def train_step(self, x, y):
        loss = nn.functional.mse_loss(self.net(x), y)
        loss.backward()
        self.optimizer.zero_grad()
        self.optimizer.step()
        self.history.append(loss.item())
# %%
net = nn.Linear(3, 1)
trainer = Trainer(net, lr=0.1)
x = torch.randn(8, 3)
y = x.sum(1, keepdim=True)
for _ in range(4):
    trainer.train_step(x, y)
print(trainer.history)
