# %%
import math
import torch
import torch.nn as nn

torch.manual_seed(0)


def angles(length, dim):
    pos = torch.arange(length, dtype=torch.float).unsqueeze(1)
    freq = torch.exp(torch.arange(0, dim, 2) * (-math.log(100.0) / dim))
    return pos * freq


class FixedPositions(nn.Module):
    def __init__(self, length, dim):
        super().__init__()
        self.register_buffer("table", torch.zeros(length, dim))
        self.table[:, 0::2] = angles(length, dim).sin()
        self.table[:, 1::2] = angles(length, dim).cos()

    def forward(self, x):
        return x + self.table[:x.size(1)]


class LearnedPositions(FixedPositions):
    """same start values, but trained along"""

    def __init__(self, length, dim):
        nn.Module.__init__(self)
        self.table = nn.Parameter(torch.zeros(length, dim))
        ang = angles(length, dim)
        with torch.no_grad():
            self.table[:, 0::2] = ang.sin()
            self.table[:, 1::2] = ang.cos()
# %%
def build(kind, dim=8):
    return nn.Sequential(
        nn.Embedding(20, dim),
        {"fixed": FixedPositions, "learned": LearnedPositions}[kind](12, dim),
        nn.TransformerEncoderLayer(dim, 2, 16, dropout=0.0, batch_first=True),
        nn.Linear(dim, 20),
    )

ids = torch.randint(0, 20, (3, 10))
scores = {}
for kind in ("fixed", "learned"):
    model = build(kind)
    loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
    loss.backward()
    scores[kind] = loss.item()
print(scores)
