# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class MLP(nn.Module):
    def __init__(self, sizes, n_out):
        super().__init__()
        self.layers = nn.ModuleList()
        for a, b in zip(sizes[:-1], sizes[1:]):
            self.layers.append(nn.Linear(a, b))
        self.out = nn.Linear(sizes[-1], n_out)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.out(x)
# %%
model = MLP([3, 8, 8], 1)
x = torch.randn(20, 3)
y = x.prod(1, keepdim=True)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    opt.zero_grad()
    loss = (model(x) - y).pow(2).mean()
    loss.backward()
    opt.step()
print(loss.item())
