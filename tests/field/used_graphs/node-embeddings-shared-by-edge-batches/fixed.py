# %%
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


class GCN(nn.Module):
    def __init__(self, n_in, n_hid, n_out):
        super().__init__()
        self.w1 = nn.Linear(n_in, n_hid)
        self.w2 = nn.Linear(n_hid, n_out)

    def forward(self, adj, x):
        h = F.relu(self.w1(adj @ x))
        return self.w2(adj @ h)


def normalize(adj):
    adj = adj + torch.eye(len(adj))
    d = adj.sum(dim=1).rsqrt()
    adj *= d.unsqueeze(1)
    adj *= d
    return adj
# %%
# リンク予測: 正例の辺と、同じ数のランダムな負例
n = 14
upper = torch.triu(torch.rand(n, n) < 0.3, diagonal=1)
pos = upper.nonzero()
neg = torch.randint(0, n, pos.shape)
pairs = torch.cat([pos, neg])
link = torch.cat([torch.ones(len(pos)), torch.zeros(len(neg))])
order = torch.randperm(len(pairs))
pairs, link = pairs[order], link[order]
adj = normalize((upper | upper.t()).float())
x = torch.randn(n, 5)
# %%
model = GCN(5, 8, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def run_epoch(batch_size=12):
    total = 0.0
    for edge, label in zip(pairs.split(batch_size), link.split(batch_size)):
        z = model(adj, x)
        score = (z[edge[:, 0]] * z[edge[:, 1]]).sum(dim=1)
        loss = F.binary_cross_entropy_with_logits(score, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(label)
    return total / len(pairs)


history = [run_epoch() for _ in range(2)]
print(history)
