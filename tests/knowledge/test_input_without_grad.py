"""An input of `torch.autograd.grad` that a loop has made anew without recording."""

from __future__ import annotations

from pathlib import Path

import pytest
from knowledge.played import added, edited, explained
from knowledge.test_cases import run
from notebook import installed

from autograd_explain.model import What

CHAIN = """
import torch
def chain(energy, x):
    x = x.requires_grad_()
    for _ in range(3):
        (slope,) = torch.autograd.grad(energy(x).sum(), x)
        with torch.no_grad():
            x = x + 0.1 * torch.randn_like(x)
    return x.detach()
"""


def test_the_update_of_a_loop_is_blamed() -> None:
    cells = (CHAIN, "chain(torch.nn.Linear(2, 1), torch.rand(4, 2))")
    found = explained(cells)
    place = found.finding.place(What.CAUSE)
    assert found.finding.tensors[0].names[0] == "x"
    assert place is not None and place.source == "x = x + 0.1 * torch.randn_like(x)"
    repaired = edited(cells, found.rewrites[0])
    assert added(cells, repaired) == ["x.requires_grad_()"]
    run(repaired)


SWITCHED = """import torch
from torch import nn
from parts import Two
torch.manual_seed(0)
model = Two()
weights = {name: list(part.parameters()) for name, part in model.parts.items()}
def through(name, x):
    model.activate(name)
    return model(x)
"""
PARTS = """import torch
from torch import nn
def _set_requires_grad(part, flag):
    for p in part.parameters():
        p.requires_grad = flag
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)})
        self.active = "a"
    def activate(self, name):
        self.active = name
        self.switch()
    def switch(self):
        for name, part in self.parts.items():
            _set_requires_grad(part, name == self.active)
    def forward(self, x):
        return self.parts[self.active](x)
"""
OF_A = "torch.autograd.grad(loss, weights['a'])"


@pytest.mark.parametrize(
    ("lines", "line", "again"),
    [
        ("loss = through('b', through('a', x)).sum()\n", "model.activate(name)", True),
        (
            "loss = through('a', x).sum()\nmodel.parts['a'].requires_grad_(False)\n",
            "model.parts['a'].requires_grad_(False)",
            True,
        ),
        ("loss = through('b', x).sum()\n", f"grads = {OF_A}", False),  # frozen all the time
    ],
)
def test_what_was_switched_off_behind_the_forward_pass(
    tmp_path: Path, lines: str, line: str, again: bool
) -> None:
    cells = (SWITCHED, f"x = torch.rand(3, 2)\n{lines}grads = {OF_A}\n")
    with installed(tmp_path, "parts", PARTS):
        found = explained(cells)
        place = found.finding.place(What.CAUSE)
        assert place is not None and place.source == line
        assert (found.finding.variant == "switched") is again
        repaired = edited(cells, found.rewrites[0])
        asked = "torch.autograd.grad(loss, [p.requires_grad_() for p in weights['a']])"
        assert (asked in repaired[1]) is again
        if again:
            run(repaired)


NET = """
import torch
from torch import nn
from torch.autograd import grad
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
net[0].requires_grad_(False)
"""
BY_NAME = """
def fisher(model, x):
    found = {n: torch.zeros_like(p) for n, p in model.named_parameters()}
    grads = grad(model(x).square().sum(), model.parameters())
    for (n, p), g in zip(model.named_parameters(), grads):
        found[n] += g * p
    return found
"""
KEPT = """
class Memory:
    def __init__(self, model):
        self.model = model
        for p in model.parameters():
            nn.init.constant_(p, 0.5)
        self.sums = [torch.zeros_like(p) for p in model.parameters()]
    def add(self, x):
        grads = grad(self.model(x).sum(), list(self.model.parameters()))
        for s, g in zip(self.sums, grads):
            s += g
"""
GIVEN = """
def steps(loss, parts, rate=0.1):
    grads = grad(loss, parts)
    return [p - rate * g for p, g in zip(parts, grads)]
"""
TRAINED = "if p.requires_grad]"
LISTS = {
    "named in a loop": (
        BY_NAME + "# %%\nfisher(net, torch.rand(2, 3))",
        [
            f"grads = grad(model(x).square().sum(), [p for p in model.parameters() {TRAINED})",
            f"for (n, p), g in zip([(n, p) for n, p in model.named_parameters() {TRAINED}, grads):",
        ],
    ),
    "kept beside": (
        KEPT + "# %%\nmemory = Memory(net)\nmemory.add(torch.rand(2, 3))",
        [
            f"self.sums = [torch.zeros_like(p) for p in model.parameters() {TRAINED}",
            f"grads = grad(self.model(x).sum(), [p for p in self.model.parameters() {TRAINED})",
        ],
    ),
    "made by the caller": (
        GIVEN + "# %%\nparts = list(net.parameters())\nsteps(net(torch.rand(2, 3)).sum(), parts)",
        [f"parts = [p for p in net.parameters() {TRAINED}"],
    ),
    "under a name": (
        GIVEN + "# %%\nparts = [net[0].bias, net[1].bias]\n"
        "steps(net(torch.rand(2, 3)).sum(), parts)",
        [f"parts = [p for p in parts {TRAINED}"],
    ),
}


@pytest.mark.parametrize("name", LISTS)
def test_frozen_ones_are_left_out_wherever_the_order_counts(name: str) -> None:
    text, lines = LISTS[name]
    cells = (NET, *text.split("# %%\n"))
    found = explained(cells)
    assert found.finding.variant == "frozen"
    repaired = edited(cells, found.rewrites[0])
    assert added(cells, repaired) == lines
    run(repaired)
