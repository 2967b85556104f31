# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class NodeSampler:
    """按节点采样子图"""

    def __init__(self, feats, adj, labels, size):
        self.feats, self.adj, self.labels, self.size = feats, adj, labels, size

    def normalised(self, idx):
        sub = self.adj[idx][:, idx] + torch.eye(len(idx))
        deg = sub.sum(1, keepdim=True)
        sub /= deg
        return sub

    def epoch(self):
        order = torch.randperm(len(self.feats))
        # 取数据不需要梯度
        with torch.no_grad():
            for idx in order.split(self.size):
                x = self.feats[idx]
                x = (x - x.mean(0)) / (x.std(0) + 1e-6)
                yield x, self.normalised(idx), self.labels[idx]
# %%
class SAGE(nn.Module):
    def __init__(self, f_in, hid, n_class):
        super().__init__()
        self.own, self.nbr = nn.Linear(f_in, hid), nn.Linear(f_in, hid, bias=False)
        self.out = nn.Linear(hid, n_class)

    def forward(self, x, a):
        h = self.own(x)
        h += self.nbr(a @ x)
        return self.out(torch.relu(h))
# %%
n = 24
adj = (torch.rand(n, n) < 0.2).float()
adj = torch.maximum(adj, adj.t())
sampler = NodeSampler(torch.randn(n, 5), adj, torch.randint(0, 3, (n,)), size=8)
model = SAGE(5, 10, 3)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
# %%
log = []
for epoch in range(2):
    model.train()
    for x, a, y in sampler.epoch():
        loss = nn.functional.cross_entropy(model(x, a), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        log.append(loss.item())
print(log)
