# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class SNLinear(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_out, n_in))
        self.register_buffer("u", F.normalize(torch.randn(n_out), dim=0))

    def sn_weight(self):
        with torch.no_grad():
            v = F.normalize(self.weight.t() @ self.u, dim=0)
            self.u.copy_(F.normalize(self.weight @ v, dim=0))
        sigma = self.u @ self.weight @ v
        return self.weight / sigma

    def forward(self, x):
        return F.linear(x, self.sn_weight())
# %%
D = SNLinear(3, 1)
D = SNLinear(3, 4)
real, fake = torch.randn(8, 3), torch.rand(8, 3)
loss = F.relu(1 - D(real)).mean() + F.relu(1 + D(fake)).mean()
loss.backward()
