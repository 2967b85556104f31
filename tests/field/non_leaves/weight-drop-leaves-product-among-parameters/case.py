# %%
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


class WeightDrop(nn.Module):
    """DropConnect on some weights of the wrapped cell (AWD-LSTM style)."""

    def __init__(self, module, p, names=("weight_hh",)):
        super().__init__()
        self.module, self.p, self.names = module, p, names
        for name in names:
            w = getattr(module, name)
            self.register_parameter(name + "_raw", nn.Parameter(w.detach().clone()))
        self.set_weights()

    def set_weights(self):
        for name in self.names:
            raw = getattr(self, name + "_raw")
            self.module._parameters[name] = F.dropout(raw, self.p, self.training)

    def forward(self, seq):
        self.set_weights()
        h = seq.new_zeros(seq.shape[0], self.module.hidden_size)
        for x in seq.unbind(1):
            h = self.module(x, h)
        return h
# %%
class Forecaster(nn.Module):
    def __init__(self, hidden=6):
        super().__init__()
        self.cell = WeightDrop(nn.RNNCell(2, hidden), p=0.3)
        self.head = nn.Linear(hidden, 1)

    def forward(self, seq):
        return self.head(self.cell(seq)).squeeze(-1)


seq, target = torch.randn(8, 5, 2), torch.randn(8)
# %%
model = Forecaster()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
# %%
losses = []
for epoch in range(3):
    loss = F.mse_loss(model(seq), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses)
