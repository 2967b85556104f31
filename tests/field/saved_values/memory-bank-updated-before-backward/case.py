# %%
from dataclasses import dataclass, field
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)

@dataclass
class MemoryBank:
    size: int
    dim: int
    momentum: float = 0.5
    vectors: torch.Tensor = field(init=False)

    def __post_init__(self):
        self.vectors = F.normalize(torch.randn(self.size, self.dim), dim=1)

    def scores(self, feat):
        return feat @ self.vectors.t()

    def update(self, idx, feat):
        with torch.no_grad():
            mixed = self.momentum * self.vectors[idx] + (1 - self.momentum) * feat
            self.vectors[idx] = F.normalize(mixed, dim=1)
# %%
encoder = nn.Linear(10, 4)
bank = MemoryBank(size=12, dim=4)
x = torch.randn(12, 10)
# %%
idx = torch.tensor([3, 7, 1, 10])
feat = F.normalize(encoder(x[idx]), dim=1)
logits = bank.scores(feat) / 0.1
bank.update(idx, feat)
loss = F.cross_entropy(logits, idx)
loss.backward()
