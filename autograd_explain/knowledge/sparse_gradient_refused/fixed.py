# %%
import torch
from torch import nn

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 8)
        self.out = nn.Linear(8, 3)

    def forward(self, ids):
        return self.out(self.words(ids))
# %%
net = Tagger()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
ids, tags = torch.randint(0, 50, (6,)), torch.randint(0, 3, (6,))
# %%
loss = nn.functional.cross_entropy(net(ids), tags)
loss.backward()
optimizer.step()
