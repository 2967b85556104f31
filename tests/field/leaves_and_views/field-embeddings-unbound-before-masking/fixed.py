# %%
from itertools import combinations
import torch
import torch.nn as nn

torch.manual_seed(0)
VOCAB = {"user": 12, "item": 9, "city": 5}


class SparseEmbedding(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.tables = nn.ModuleDict({name: nn.Embedding(n, dim) for name, n in vocab.items()})

    def forward(self, ids):
        return torch.stack([self.tables[name](ids[name]) for name in self.tables], dim=1)


def by_field(stacked):
    return dict(zip(VOCAB, stacked.unbind(dim=1)))
# %%
class DeepFM(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.embed = SparseEmbedding(VOCAB, dim)
        self.deep = nn.Sequential(nn.Linear(dim * len(VOCAB), 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, ids, present):
        stacked = self.embed(ids)
        # 缺失的特征置零
        stacked = stacked * present.unsqueeze(-1)
        fields = by_field(stacked)
        fm = 0
        for (i, left), (j, right) in combinations(enumerate(VOCAB), 2):
            both = present[:, i] * present[:, j]
            fm = fm + both * (fields[left] * fields[right]).sum(dim=-1)
        return fm + self.deep(stacked.flatten(1)).squeeze(-1)
# %%
model = DeepFM()
ids = {name: torch.randint(0, n, (16,)) for name, n in VOCAB.items()}
present = (torch.rand(16, 3) > 0.2).float()
click = (torch.rand(16) > 0.5).float()
loss = nn.functional.binary_cross_entropy_with_logits(model(ids, present), click)
loss.backward()
print(loss.item())
