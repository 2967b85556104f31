# %%
import torch
from torch import nn

torch.manual_seed(0)


class Binarizer:
    """順伝播の間だけ重みを ±scale にする (BinaryConnect)"""

    def __init__(self, model):
        self.layers = [m for m in model.modules() if isinstance(m, nn.Linear)]
        self.real = {}

    def binarize(self):
        for layer in self.layers:
            w = layer.weight
            self.real[layer] = w.detach().clone()
            w.data.copy_(w.detach().sign() * w.detach().abs().mean())

    def restore(self):
        for layer in self.layers:
            layer.weight.data.copy_(self.real[layer])


def predict(model, binarizer, x):
    binarizer.binarize()
    out = model(x)
    binarizer.restore()
    return out
# %%
x = torch.randn(40, 5)
y = (x[:, 0] - x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(5, 8), nn.Hardtanh(inplace=True), nn.Linear(8, 8), nn.Hardtanh(inplace=True), nn.Linear(8, 2))
binarizer = Binarizer(model)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
# %%
history = []
for step in range(4):
    loss = nn.functional.cross_entropy(predict(model, binarizer, x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    history.append(loss.item())
print(history)
