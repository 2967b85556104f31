# %%
import torch
from torch import nn
import torch.nn.utils.parametrize as P
torch.manual_seed(0)


class Sym(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)


nets = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
P.register_parametrization(nets["a"], "weight", Sym())
# %%
out = {}
x = torch.randn(2, 3)
for name, net in nets.items():
    x = net(x).sigmoid()  # saved
    out[name] = x
for k in out:
    out[k] *= 2  # wrote
sum(v.sum() for v in out.values()).backward()
