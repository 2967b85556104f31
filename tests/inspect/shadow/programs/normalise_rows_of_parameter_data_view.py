# %%
import torch
from torch import nn
torch.manual_seed(0)


class Metric(nn.Module):
    def __init__(self, d, k):
        super().__init__()
        self.proto = nn.Parameter(torch.randn(k, d))

    def forward(self, x):
        return torch.cdist(x, self.proto)  # saved

    def project(self):
        with torch.no_grad():
            self.proto.div_(self.proto.norm(dim=1, keepdim=True))  # wrote


# %%
m = Metric(3, 4)
d = m(torch.randn(5, 3))
m.project()
d.min(dim=1).values.mean().backward()
