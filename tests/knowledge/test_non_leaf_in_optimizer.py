"""Parts of parameters given to an optimizer: a notebook, and the lines of its first rewrite."""

from __future__ import annotations

import pytest
from knowledge.played import edited, explained
from knowledge.test_cases import run

from autograd_explain.render.topic_content import cells_of

BEGIN = """# %%
import torch
from torch import nn
torch.manual_seed(0)
table = nn.Embedding(5, 3)
# %%
"""
PROPERTIES = """class Level(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw = nn.Parameter(torch.zeros(1))
    @property
    def height(self):
        return self.raw.exp()
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw_rate, self.inner = nn.Parameter(torch.zeros(2)), nn.Linear(2, 2)
        self.level = Level()
    @property
    def rate(self):
        return nn.functional.softplus(self.raw_rate) + 1e-4
"""
PROGRAMS: dict[str, tuple[str, list[str]]] = {
    "a slice in the call": (
        "opt = torch.optim.SGD([table.weight[:2]], lr=0.1)\n",
        ["opt = torch.optim.SGD([table.weight], lr=0.1)"],
    ),
    "rows by number": (
        "opt = torch.optim.Adam([table.weight[i] for i in (1, 3)], lr=0.1)\n",
        ["opt = torch.optim.Adam([table.weight], lr=0.1)"],
    ),
    "a slice with a name that only the call reads": (
        "rows = table.weight[1:]\nopt = torch.optim.SGD([rows], lr=0.1)\n"
        "table(torch.arange(5)).exp().sum().backward()\nopt.step()\n",
        ["opt = torch.optim.SGD([table.weight], lr=0.1)"],
    ),
    "a row in each round": (
        "for k in range(2):\n    row = table.weight[k]\n    opt = torch.optim.SGD([row], lr=0.1)\n",
        ["    opt = torch.optim.SGD([table.weight], lr=0.1)"],
    ),
    "a row with a rate of its own, beside a group that may hold the others": (
        "row = table.weight[0]\nfront = nn.Linear(1, 1)\n"
        "opt = torch.optim.SGD([{'params': [row], 'lr': 1.0},\n"
        "                       {'params': front.parameters()}], lr=0.1)\n",
        ["opt = torch.optim.SGD([{'params': [table.weight], 'lr': 1.0},"],
    ),
    "a property of a module, and of one in it": (
        PROPERTIES + "net = Scaled()\n"
        "opt = torch.optim.SGD([{'params': net.inner.parameters()},\n"
        "                       {'params': [net.rate, net.level.height]}], lr=0.1)\n",
        ["                       {'params': [net.raw_rate, net.level.raw]}], lr=0.1)"],
    ),
    "two start values in two groups, beside a leaf": (
        "w = torch.rand(3, requires_grad=True)\n"
        "shift = torch.rand(3, requires_grad=True) * 6\n"
        "scale = nn.Parameter(torch.ones(3)).double()\n"
        "opt = torch.optim.SGD([{'params': [shift, w]}, {'params': [scale]}], lr=0.1)\n",
        [
            "shift = (torch.rand(3) * 6).requires_grad_()",
            "scale = nn.Parameter(torch.ones(3).double())",
        ],
    ),
    "a row that the loss reads for itself": (
        "row = table.weight[-1]\nopt = torch.optim.SGD([row], lr=0.1)\n"
        "row.square().sum().backward()\n",
        ["row = table.weight[-1].detach().requires_grad_()"],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text, lines = PROGRAMS[name]
    cells = cells_of(BEGIN + text)
    found = explained(cells)
    assert found.finding.cause == "non_leaf_in_optimizer"
    repaired = edited(cells, found.rewrites[0])
    assert [line for line in repaired[-1].splitlines() if line not in cells[-1]] == lines
    run(repaired)


def test_what_is_computed_from_a_named_leaf_is_another_matter() -> None:
    lines = ("w = torch.rand(3, requires_grad=True)", "twice = w * 2",
             "shift = torch.rand(3, requires_grad=True) * 6",
             "opt = torch.optim.SGD([shift, twice, w], lr=0.1)")  # fmt: skip
    cells = cells_of(BEGIN + "\n".join(lines))
    first = edited(cells, explained(cells).rewrites[0])[-1]
    changed = [line for line in first.splitlines() if line not in lines]
    assert changed == ["shift = (torch.rand(3) * 6).requires_grad_()"]
