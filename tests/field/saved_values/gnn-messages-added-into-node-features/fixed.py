# %%
import torch
import torch.nn as nn
import torch.nn.functional as F


class MessagePassing(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])])
        self.out = nn.Linear(sizes[-1], 2)

    def forward(self, feats, edges):
        src, dst = edges
        h = feats
        for lin in self.layers:
            h = F.relu(lin(h))
            msg = h[src]
            h = h.index_add(0, dst, msg)
        return self.out(h)

# %%
torch.manual_seed(0)
edges = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]])
feats = torch.rand(5, 4)
labels = torch.tensor([0, 1, 0, 1, 1])
gnn = MessagePassing([4, 6, 6])

# %%
optimizer = torch.optim.Adam(gnn.parameters(), lr=0.01)
for epoch in range(3):
    optimizer.zero_grad()
    loss = F.cross_entropy(gnn(feats, edges), labels)
    loss.backward()
    optimizer.step()
