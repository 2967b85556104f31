# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


def edge_softmax(score, dst, n_nodes):
    score = score - score.max()
    weight = score.exp()
    total = torch.zeros(n_nodes, score.size(1))
    total.index_add_(0, dst, weight)
    weight /= total[dst]
    return weight


class GATLayer(nn.Module):
    def __init__(self, d_in, d_out, heads=2):
        super().__init__()
        self.lin = nn.Linear(d_in, heads * d_out, bias=False)
        self.a_src = nn.Parameter(0.3 * torch.randn(heads, d_out))
        self.a_dst = nn.Parameter(0.3 * torch.randn(heads, d_out))
        self.shape = (heads, d_out)

    def forward(self, x, edges):
        src, dst = edges
        h = self.lin(x).view(-1, *self.shape)
        e = (h[src] * self.a_src).sum(-1) + (h[dst] * self.a_dst).sum(-1)
        att = edge_softmax(F.leaky_relu(e, 0.2), dst, len(x))
        out = torch.zeros_like(h)
        out.index_add_(0, dst, att.unsqueeze(-1) * h[src])
        return out.flatten(1)

# %%
class GAT(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = GATLayer(5, 4)
        self.conv2 = GATLayer(8, 3, heads=1)

    def forward(self, x, edges):
        x = F.elu(self.conv1(x, edges), inplace=True)
        return self.conv2(x, edges)

# %%
n = 8
ring = torch.arange(n)
edges = torch.stack([torch.cat([ring, ring, (ring + 3) % n]), torch.cat([ring, (ring + 1) % n, ring])])
x, y = torch.randn(n, 5), torch.randint(0, 3, (n,))

net = GAT()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for epoch in range(3):
    loss = F.cross_entropy(net(x, edges), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
