"""`.grad` read of detached aliases of parameters: the gradient is the parameter's own.

A row is a notebook and the lines that the first rewrite brings in.
"""

from __future__ import annotations

import pytest
from knowledge.played import edited, play
from knowledge.test_cases import run

from autograd_explain.render.topic_content import cells_of

START = """# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
net(torch.rand(4, 3)).square().sum().backward()
# %%
"""
PROGRAMS: dict[str, tuple[str, list[str]]] = {
    "items of the state": (
        "norms = {k: v.grad.norm() for k, v in net.state_dict().items()}\n",
        ["norms = {k: v.grad.norm() for k, v in net.named_parameters()}"],
    ),
    "values of the state": (
        "for v in net.state_dict().values():\n    print(v.grad.norm())\n",
        ["for v in net.parameters():"],
    ),
    "one entry of a kept state": (
        "sd = net.state_dict()\nprint(sd['0.weight'].grad.norm())\n",
        ["sd = net.state_dict(keep_vars=True)"],
    ),
    "one entry at once": (
        "print(net.state_dict()['0.weight'].grad.norm())\n",
        ["print(net.state_dict(keep_vars=True)['0.weight'].grad.norm())"],
    ),
    "update through data": (
        "for p in net.parameters():\n    d = p.data\n    d -= 0.1 * d.grad\n",
        ["d -= 0.1 * p.grad"],
    ),
    "detached name": (
        "w = net[0].weight.detach()\nprint(w.grad.norm(), w.grad.max())\n",
        ["print(net[0].weight.grad.norm(), net[0].weight.grad.max())"],
    ),
    "list of data": (
        "ws = [p.data for p in net.parameters()]\nfor w in ws:\n    print(w.grad.norm())\n",
        ["ws = [p for p in net.parameters()]"],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_alias(name: str) -> None:
    text, lines = PROGRAMS[name]
    cells = cells_of(START + text)
    found = play(cells)
    assert found.trouble == ""
    assert found.diagnosis is not None
    finding, rewrites = found.diagnosis.finding, found.diagnosis.rewrites
    assert (finding.cause, finding.variant) == ("no_gradient_yet", "alias")
    repaired = edited(cells, rewrites[0])
    before = [line for cell in cells for line in cell.splitlines()]
    new = [line.strip() for cell in repaired for line in cell.splitlines() if line not in before]
    assert new == lines
    run(repaired)


def test_a_copy_is_no_alias() -> None:
    found = play(cells_of(START + "w = net[0].weight.detach().clone()\nprint(w.grad.norm())\n"))
    assert found.diagnosis is not None
    assert found.diagnosis.finding.variant == "no_flag"


def test_a_leaf_without_gradient_is_another_matter() -> None:
    found = play(cells_of(START + "net.zero_grad()\nw = net[0].weight.data\nw.grad.norm()\n"))
    assert found.diagnosis is not None
    assert found.diagnosis.finding.variant == "no_flag"
