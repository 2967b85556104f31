"""What is computed once and read in every round, though its parameters change, in watched cells."""

from __future__ import annotations

import pytest
from knowledge.played import edited, play
from knowledge.test_cases import run

from autograd_explain.render.topic_content import cells_of

HEAD = """# %%
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(6, 2), torch.randn(6)
# %%
"""
LINEAR = """\
for _ in range(5):
    opt.zero_grad()
    loss = (x @ w - y).pow(2).mean()
    loss.backward()
    opt.step()
"""
NETWORKS = """\
encoder, head = nn.Linear(2, 3), nn.Linear(3, 1)
opt = torch.optim.Adam([*encoder.parameters(), *head.parameters()])
"""
ROUNDS = """\
    for _ in range(rounds):
        opt.zero_grad()
        loss = (head(features).squeeze(1) - y).pow(2).mean()
        loss.backward(retain_graph=True)
        opt.step()
train(4)
"""

#: The program, the name told, and what a repaired cell holds.
PROGRAMS = {
    "before the loop": (
        """
a, b = (torch.zeros(1, requires_grad=True) for _ in range(2))
opt = torch.optim.SGD([a, b], lr=0.1)
w = torch.cat([a, b])
"""
        + LINEAR,
        "w",
        "    opt.zero_grad()\n    w = torch.cat([a, b])\n",
    ),
    "several statements": (
        """
a, b = (torch.zeros(2, requires_grad=True) for _ in range(2))
opt = torch.optim.SGD([a, b], lr=0.1)
total = a + b
w = total - total.mean()
"""
        + LINEAR,
        "w",
        "    total = a + b\n    w = total - total.mean()\n",
    ),
    "features of an encoder, kept by retain_graph": (
        NETWORKS + "features = encoder(x)\ndef train(rounds):\n" + ROUNDS,
        "features",
        "        opt.zero_grad()\n        features = encoder(x)\n",
    ),
    "in a function": (
        NETWORKS + "def train(rounds):\n    features = encoder(x)\n" + ROUNDS,
        "features",
        "        opt.zero_grad()\n        features = encoder(x)\n",
    ),
    "in a constructor": (
        """
class Shifted(nn.Module):
    def __init__(self):
        super().__init__()
        self.dx = nn.Parameter(torch.zeros(1))
        self.dy = nn.Parameter(torch.zeros(1))
        self.by = torch.cat([self.dx, self.dy])
    def forward(self, points):
        return (points + self.by).sum(1)
model = Shifted()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    opt.zero_grad()
    loss = (model(x) - y).pow(2).mean()
    loss.backward()
    opt.step()
""",
        "model.by",
        "    @property\n    def by(self):\n        return torch.cat([self.dx, self.dy])\n",
    ),
    "the loss": (
        """
a = torch.zeros(2, requires_grad=True)
opt = torch.optim.SGD([a], lr=0.1)
loss = (x @ a - y).pow(2).mean()
for _ in range(5):
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
""",
        "loss",
        "    loss = (x @ a - y).pow(2).mean()\n    loss.backward(retain_graph=True)\n",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text, tensor, lines = PROGRAMS[name]
    cells = cells_of(HEAD + text.lstrip())
    found = play(cells, watched=True)
    assert found.trouble == ""
    assert found.diagnosis is not None, found.output
    finding = found.diagnosis.finding
    assert (finding.cause, finding.variant) == ("second_backward", "stale")
    assert tensor in finding.tensors[0].names
    repaired = edited(cells, found.diagnosis.rewrites[0])
    assert lines in repaired[1]
    run(repaired)
    assert play(repaired, watched=True).diagnosis is None
