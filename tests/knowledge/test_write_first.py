"""Parameters that a function writes after its forward pass, where a library asks for the gradient
of what it returns: the write goes before the first statement that saves what it writes."""

from __future__ import annotations

import pytest
from knowledge.played import edited, play
from knowledge.test_cases import run

from autograd_explain.render.topic_content import cells_of

START = """# %%
import torch
from torch import nn
from torch.autograd.functional import jacobian
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 4), nn.Linear(4, 2, bias=False)
    @torch.no_grad()
    def rescale(self):
        self.head.weight.div_(self.head.weight.norm())
    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))
net = Net()
# %%
"""
PROGRAMS = {
    "by a method": (
        "def output(x):\n    y = net(x)\n    size = y.detach().norm()\n    net.rescale()\n"
        "    return y / size\njacobian(output, torch.ones(2, 3))\n",
        "    net.rescale()\n    y = net(x)\n    size",
    ),
    "in a block of its own": (
        "def output(x):\n    y = net(x)\n    if net.training:\n        with torch.no_grad():\n"
        "            for p in net.parameters():\n                p.clamp_(-0.1, 0.1)\n"
        "    return y * 2\njacobian(output, torch.ones(2, 3))\n",
        "                p.clamp_(-0.1, 0.1)\n    y = net(x)\n    return",
    ),
    "of two statements": (
        "def output(x):\n    scaled = x * 2\n    h = torch.tanh(net.body(scaled))\n"
        "    y = net.head(h)\n"
        "    with torch.no_grad():\n        for p in net.parameters():\n            p.mul_(0.9)\n"
        "    return y\njacobian(output, torch.ones(2, 3))\n",
        "            p.mul_(0.9)\n    h = torch.tanh",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text, wanted = PROGRAMS[name]
    cells = cells_of(START + text)
    found = play(cells, watched=True).diagnosis
    assert found is not None
    assert found.finding.cause == "saved_value_overwritten"
    assert found.rewrites[0].fix == "write_first"
    new = edited(cells, found.rewrites[0])
    assert wanted in new[-1]
    run(new)


def test_a_write_that_needs_the_result_stays() -> None:
    text = (
        "def output(x):\n    y = net(x)\n    size = y.detach().norm()\n"
        "    with torch.no_grad():\n        net.head.weight.div_(size)\n    return y\n"
        "jacobian(output, torch.ones(2, 3))\n"
    )
    found = play(cells_of(START + text), watched=True).diagnosis
    assert found is not None
    assert found.finding.cause == "saved_value_overwritten"
    assert all(rewrite.fix != "write_first" for rewrite in found.rewrites)
