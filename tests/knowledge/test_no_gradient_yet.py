"""`.grad` read of detached aliases of parameters: the gradient is the parameter's own.

A row is a notebook and the lines that the first rewrite brings in.
"""

from __future__ import annotations

import pytest
from knowledge.played import added, edited, explained, play
from knowledge.test_cases import run

from autograd_explain.model import What
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
    found = explained(cells)
    finding, rewrites = found.finding, found.rewrites
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


META = """# %%
import torch
from torch import nn
torch.manual_seed(0)
class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.rand(3, 1))
def adapt(model, x):
    loss = (x @ model.w).square().mean()
    (g,) = torch.autograd.grad(loss, model.w, create_graph=True)
    return nn.Parameter(model.w - 0.1 * g)
model, x = Scale(), torch.rand(4, 3)
# %%
for _ in range(2):
    meta = (x @ adapt(model, x)).square().mean()
    {}
    with torch.no_grad():
        model.w -= g
"""


@pytest.mark.parametrize(
    ("read", "cause"),
    [
        ("meta.backward(); g = model.w.grad.clone()", "no_gradient_yet"),
        ("g = torch.autograd.grad(meta, model.w)[0]", "unused_in_graph"),
    ],
)
def test_a_new_leaf_of_an_adapted_weight(read: str, cause: str) -> None:
    cells = cells_of(META.format(read))
    found = play(cells)
    assert found.trouble == "" and found.diagnosis is not None
    told = found.diagnosis.finding
    assert told.cause == cause
    blamed = [e.place.source for e in told.events if e.what is What.CAUSE and e.place is not None]
    assert blamed == ["return nn.Parameter(model.w - 0.1 * g)"]
    repaired = edited(cells, found.diagnosis.rewrites[0])
    assert added(cells, repaired) == ["return (model.w - 0.1 * g)"]
    run(repaired)
