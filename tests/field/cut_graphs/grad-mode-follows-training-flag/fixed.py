# %%
import torch
from torch import nn

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self, n_in=6, n_class=3):
        super().__init__()
        self.fc1 = nn.Linear(n_in, 10)
        self.bn = nn.BatchNorm1d(10)
        self.act = nn.ReLU(inplace=True)
        self.fc2 = nn.Linear(10, n_class)

    def forward(self, x):
        h = self.act(self.bn(self.fc1(x)))
        return self.fc2(h)


def fit(model, x, y, lr, epochs):
    opt = torch.optim.SGD(model.parameters(), lr=lr)
    log = []
    for _ in range(epochs):
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        log.append(loss.item())
    return log
# %%
x = torch.randn(48, 6)
y = x[:, :3].argmax(dim=1)
model = Classifier()
model.train()
first = fit(model, x[:40], y[:40], lr=0.2, epochs=10)
# %%
# 少ないデータで追加学習する。BatchNorm の統計は固定したいので eval にする
model.eval()
second = fit(model, x[40:] * 1.2, y[40:], lr=0.02, epochs=5)
print(first[-1], second)
