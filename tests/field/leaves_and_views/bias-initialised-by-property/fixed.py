# %%
import torch
import torch.nn as nn


class ForgetGate(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        nn.init.orthogonal_(self.lin.weight)

    @property
    def openness(self):
        return torch.sigmoid(self.lin.bias).mean().item()

    @openness.setter
    def openness(self, value):
        with torch.no_grad():
            self.lin.bias.fill_(torch.logit(torch.tensor(value)).item())

    def forward(self, c):
        return torch.sigmoid(self.lin(c)) * c
# %%
torch.manual_seed(0)
gate = ForgetGate(4)
gate.openness = 0.9
print(gate(torch.ones(1, 4)))
