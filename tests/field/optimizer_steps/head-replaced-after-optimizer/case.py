# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self, n_class):
        super().__init__()
        self.stem = nn.Linear(5, 6)
        self.head = nn.Linear(6, n_class)

    def forward(self, x):
        return self.head(torch.relu(self.stem(x)))
# %%
model = Net(10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
model.head = nn.Linear(6, 3)
# %%
x, y = torch.randn(12, 5), torch.randint(0, 3, (12,))
for _ in range(4):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
print(loss.item())
