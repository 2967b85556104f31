# %%
import copy
import torch
import torch.nn as nn

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 6)
        self.fc = nn.Linear(6, 2)
        self.last = None

    def forward(self, x):
        self.last = torch.relu(self.body(x))
        return self.fc(self.last)
# %%
model = Classifier()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(9, 4), torch.randint(0, 2, (9,))
best, best_loss = None, float("inf")
for epoch in range(3):
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if loss.item() < best_loss:
        best, best_loss = copy.deepcopy(model), loss.item()
