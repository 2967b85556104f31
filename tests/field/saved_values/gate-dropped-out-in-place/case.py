# %%
import torch
import torch.nn as nn

class GatedUnit(nn.Module):
    def __init__(self, d_in, d_out, p=0.25):
        super().__init__()
        self.value = nn.Linear(d_in, d_out)
        self.gate = nn.Linear(d_in, d_out)
        self.drop = nn.Dropout(p, inplace=True)

    def forward(self, x):
        v = self.drop(self.value(x))
        gate = torch.sigmoid(self.gate(x))
        gate = self.drop(gate)
        return v * gate
# %%
torch.manual_seed(3)
model = GatedUnit(5, 4)
x = torch.randn(7, 5)
torch.manual_seed(4)
loss = model(x).pow(2).sum()
loss.backward()
