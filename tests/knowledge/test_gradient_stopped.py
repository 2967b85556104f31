"""Where what was merged for an evaluation is taken out again."""

from __future__ import annotations

import pytest
from knowledge.played import added, edited, play

from autograd_explain.model import Outcome

NET = """\
import torch
from torch import nn
torch.manual_seed(0)
class Adapted(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, 3), requires_grad=False)
        self.a, self.b = nn.Parameter(torch.ones(3, 1)), nn.Parameter(torch.ones(1, 3))
        self.merged = False
    def merge(self):
        if not self.merged:
            self.weight.data += self.a @ self.b
        self.merged = True
    def unmerge(self):
        if self.merged:
            self.weight.data -= self.a @ self.b
        self.merged = False
    def train(self, mode=True):
        super().train(mode)
        self.unmerge() if mode else self.merge()
        return self
    def forward(self, x):
        return x @ (self.weight if self.merged else self.weight + self.a @ self.b)
net, head = Adapted(), nn.Linear(3, 1)
model = nn.Sequential(net, head)
opt = torch.optim.SGD([net.a, net.b, *head.parameters()], lr=0.01)
x = torch.ones(2, 3)
"""
LOOP = """\
for _ in range(3):
    opt.zero_grad()
    model(x).square().sum().backward()
    opt.step()
    """
RETURNS = "def look():\n    net.merge()\n    with torch.no_grad():\n        return model(x).sum()\n"
EACH = "def look():\n    for part in [net]:\n        part.merge()\n    seen = model(x)\n"


@pytest.mark.parametrize(
    ("cell", "lines"),
    [
        (f"{LOOP}net.merge()\n    print(model(x))", ["net.unmerge()"]),
        (f"{LOOP}model.eval()\n    print(model(x))", ["model.train()"]),
        (
            f"{RETURNS}{LOOP}look()",
            ["result = model(x).sum()", "net.unmerge()", "return result"],
        ),
        (
            f"{EACH}    return seen\n{LOOP}look()",
            ["part.unmerge()"],
        ),
    ],
)
def test_it_is_taken_back(cell: str, lines: list[str]) -> None:
    cells = (NET, cell)
    found = play(cells, watched=True, verify=True).diagnosis
    assert found is not None and found.finding.cause == "gradient_stopped"
    first = found.rewrites[0]
    assert (first.fix, first.outcome) == ("undo", Outcome.RUNS)
    assert [line.strip() for line in added(cells, edited(cells, first))] == lines
