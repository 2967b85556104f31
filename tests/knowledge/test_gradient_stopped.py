"""Where what was merged for an evaluation is taken out again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from knowledge.played import added, edited, play
from notebook import installed

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


LIBRARY = """\
import torch

class Smooth(torch.nn.Module):
    def __init__(self, cached=False, always=False):
        super().__init__()
        self.cached, self._cached_x, self.always = cached, None, always
        self.lin = torch.nn.Linear(3, 1)
    def forward(self, x):
        if self._cached_x is None:
            x = x * 2
            self._cached_x = x if self.cached else None
        else:
            x = self._cached_x.detach()
        return self.lin(x.detach() if self.always else x)

class Bank(torch.nn.Module):
    kept = None
    def forward(self, x=None):
        if x is None:
            return self.kept.detach()
        self.kept = x
        return x
"""
GRAPH = """\
import torch
from torch import nn
from keptlib import Bank, Smooth
torch.manual_seed(0)
users = nn.Embedding(4, 3)
conv = Smooth(cached=True)
bank, head = Bank(), nn.Linear(3, 1)
opt = torch.optim.SGD([*users.parameters(), *conv.parameters(), *head.parameters()], lr=0.1)
ids = torch.arange(4)
def train(compute):
    opt.zero_grad()
    compute().square().mean().backward()
    opt.step()
"""
ROUND = "for i in range(4):\n    train("


@pytest.fixture
def library(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path, "keptlib", LIBRARY):
        yield


@pytest.mark.usefixtures("library")
def test_what_an_object_of_a_library_keeps_is_computed_in_every_round() -> None:
    cells = (GRAPH, "for _ in range(3):\n    train(lambda: conv(users(ids)))")
    found = play(cells, watched=True, verify=True).diagnosis
    assert found is not None and found.finding.cause == "gradient_stopped"
    assert found.finding.tensors[0].names[0] == "users.weight"
    first = found.rewrites[0]
    assert first.outcome is Outcome.RUNS
    assert added(cells, edited(cells, first)) == ["conv = Smooth(cached=False)"]


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    "cell",
    [
        f"{ROUND}lambda: head(bank(users(ids)) if i < 2 else bank()))",
        f"{ROUND}lambda: head(users(ids) if i % 2 else users(ids).detach()))",
        f"{ROUND}lambda: conv(users(ids)) if i < 1 else head(torch.ones(4, 3)))",
        "users.requires_grad_(False)\nfor i in range(4):\n    train(lambda: conv(users(ids)))",
        f"conv = Smooth()\n{ROUND}lambda: [setattr(conv, 'always', i > 1), conv(users(ids))][1])",
    ],
)
def test_what_is_trained_in_the_first_rounds_on_purpose_is_quiet(cell: str) -> None:
    found = play((GRAPH, cell), watched=True)
    assert found.diagnosis is None or found.diagnosis.finding.cause != "gradient_stopped"
    assert found.trouble == ""
