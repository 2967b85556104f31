# %%
import torch
from torch import nn

torch.manual_seed(0)


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(3, 4), nn.Linear(4, 1)

    def forward(self, x):
        self.hidden = torch.tanh(self.inner(x))
        return self.outer(self.hidden)
# %%
net = Regressor()
loss = net(torch.rand(5, 3)).square().mean()
loss.backward()
# %%
sensitivity = net.hidden.grad
print(sensitivity)
