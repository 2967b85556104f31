"""Training programs to measure: text, as a user would write them in a cell.

Each defines `steps(n)`, which trains for n steps and returns the last loss.
"""

from __future__ import annotations

_LOOP = """
optimizer = torch.optim.{optimizer}
losses = []

def steps(n):
    for _ in range(n):
        optimizer.zero_grad()
        loss = {loss}
        loss.backward()
        optimizer.step()
    losses.append(loss.item())
    return losses[-1]
"""

_MLP = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(*[layer for _ in range(10) for layer in (nn.Linear(32, 32), nn.ReLU())])
x = torch.randn(16, 32)
y = torch.randn(16, 32)
"""

_TRANSFORMER = """
import torch
from torch import nn
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(256, 4, 512, dropout=0.0, batch_first=True)
model = nn.TransformerEncoder(layer, 4)
x = torch.randn(8, 64, 256)
y = torch.randn(8, 64, 256)
"""

_CNN = """
import torch
from torch import nn
torch.manual_seed(0)

def block(inside, outside):
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, padding=1),
        nn.BatchNorm2d(outside),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
    )

model = nn.Sequential(block(3, 16), block(16, 32), block(32, 64), nn.Flatten(), nn.Linear(1024, 10))
x = torch.randn(16, 3, 32, 32)
y = torch.randint(0, 10, (16,))
"""

_LSTM = """
import torch
from torch import nn
torch.manual_seed(0)

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(500, 64)
        self.lstm = nn.LSTM(64, 96, num_layers=2, batch_first=True)
        self.out = nn.Linear(96, 20)

    def forward(self, tokens):
        hidden, _ = self.lstm(self.embed(tokens))
        return self.out(hidden)

model = Tagger()
x = torch.randint(0, 500, (8, 40))
y = torch.randint(0, 20, (8, 40))
"""


def _program(head: str, optimizer: str, loss: str) -> str:
    return head + _LOOP.format(optimizer=optimizer, loss=loss)


_SGD = "SGD(model.parameters(), lr=0.01)"
_ADAM = "AdamW(model.parameters(), lr=1e-3)"

#: By name: what it is, and its program.
WORKLOADS = {
    "tiny MLP": (
        "10 × Linear(32) and ReLU, batch 16, SGD",
        _program(_MLP, _SGD, "nn.functional.mse_loss(model(x), y)"),
    ),
    "transformer": (
        "4 encoder layers, width 256, batch 8 × 64 tokens, AdamW",
        _program(_TRANSFORMER, _ADAM, "nn.functional.mse_loss(model(x), y)"),
    ),
    "CNN": (
        "3 blocks of Conv, BatchNorm, ReLU(inplace) and MaxPool, batch 16 × 3 × 32 × 32, AdamW",
        _program(_CNN, _ADAM, "nn.functional.cross_entropy(model(x), y)"),
    ),
    "LSTM": (
        "Embedding, 2 LSTM layers of 96, Linear, batch 8 × 40 tokens, AdamW",
        _program(_LSTM, _ADAM, "nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())"),
    ),
}
