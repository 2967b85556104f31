# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class AffinityGraph(nn.Module):
    """节点之间的关系由特征学习得到"""

    def __init__(self, dim, inner):
        super().__init__()
        self.phi = nn.Linear(dim, inner, bias=False)
        self.theta = nn.Linear(dim, inner, bias=False)

    def forward(self, x):
        affinity = self.phi(x) @ self.theta(x).transpose(-1, -2)
        affinity = affinity.sigmoid() + torch.eye(x.size(-2))
        inv_sqrt = affinity.sum(dim=-1).rsqrt()
        return inv_sqrt.unsqueeze(-1) * affinity * inv_sqrt.unsqueeze(-2)
# %%
class AGCN(nn.Module):
    def __init__(self, dims=(6, 8, 3)):
        super().__init__()
        self.graph = AffinityGraph(dims[0], 4)
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in zip(dims, dims[1:])])

    def forward(self, x):
        adj = self.graph(x)
        for i, layer in enumerate(self.layers):
            x = layer(adj @ x)
            if i + 1 < len(self.layers):
                x = torch.relu(x)
        return x.mean(dim=-2)
# %%
gcn = AGCN()
opt = torch.optim.SGD(gcn.parameters(), lr=0.05)
joints = torch.randn(10, 5, 6)
action = torch.randint(0, 3, (10,))
for epoch in range(4):
    loss = nn.functional.cross_entropy(gcn(joints), action)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
