"""A library that sets the flag of what it is handed: the argument is named, not detached."""

from __future__ import annotations

from pathlib import Path

import pytest
from knowledge.played import edited, play
from knowledge.test_cases import run
from notebook import installed

LIBRARY = """from torch import nn
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.sets_flag = True
    def forward(self, values):
        hidden = values[:, None]
        if self.sets_flag and self.training:
            hidden.requires_grad = True
        return self.layer(hidden)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.scale = nn.Linear(3, 3)
    def forward(self, values, scaled=False):
        return self.encoder(self.scale(values) if scaled else values)
def watched(values):
    values.requires_grad = True
    return values.sum()
def fixed(values):
    values.requires_grad = False
    return values.sum()
"""
START = """import torch
from torch import nn
from someencoder import Net, fixed, watched
torch.manual_seed(0)
front, net, x = nn.Linear(3, 3), Net(), torch.randn(4, 3)
class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.front, self.net = front, net
    def forward(self, x):
        return self.net(values=self.front(x)).sum()
"""


@pytest.mark.parametrize(
    ("call", "named", "new"),
    [
        ("Whole()(x).backward()", "self.front(x)", "self.net.encoder.sets_flag = False"),
        ("h = front(x)\nwatched(h).backward()", "h", ""),
        ("h = front(x)\nfixed(h) + front.bias.sum()", "h", "fixed(h.detach()) + front.bias.sum()"),
        ("net(x, scaled=True).sum().backward()", "", ""),  # of its own parameters
    ],
    ids=["switch", "no switch", "off", "its own"],
)
def test_a_library_sets_the_flag(tmp_path: Path, call: str, named: str, new: str) -> None:
    with installed(tmp_path, "someencoder", LIBRARY):
        cells = (START, call)
        found = play(cells)
        assert found.diagnosis is not None
        finding = found.diagnosis.finding
        if not named:
            assert finding.cause == "unknown"
            return
        assert (finding.cause, finding.variant) == ("requires_grad_on_non_leaf", "library")
        assert named in finding.tensors[0].names
        rewrites = found.diagnosis.rewrites
        assert bool(rewrites) == bool(new)
        for rewrite in rewrites[:1]:
            changed = edited(cells, rewrite)
            assert new in "\n".join(changed)
            run(changed)
