"""Writes to leaves that a backward still to come needs, and leaves that several loops write.

A row is a notebook and lines that its first rewrite brings in, in this order; it runs to the end.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from knowledge.played import added, edited, explained
from knowledge.test_cases import run
from notebook import installed

from autograd_explain.render.topic_content import cells_of

START = """# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(5, 3)
# %%
"""
PROGRAMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "clipped between the loss and its backward": (
        "for _ in range(2):\n    loss = net(x).mean()\n    for p in net.parameters():\n"
        "        p.clamp_(-0.1, 0.1)\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n",
        ("    opt.step()", "        with torch.no_grad():"),
    ),
    "in a function that is called too early": (
        "def clip(net):\n    for p in net.parameters():\n        p.clamp_(-0.1, 0.1)\n"
        "def train():\n    loss = net(x).mean()\n    clip(net)\n    (2 * loss).backward()\n"
        "train()\n",
        ("        with torch.no_grad():", "    clip(net)"),
    ),
    "one weight, and no step behind the backward": (
        "y = net(x)\nloss = y.square().sum()\nnet[2].weight.mul_(0.5)\nloss.backward()\n",
        ("loss.backward()", "with torch.no_grad():"),
    ),
    "added and taken away again": (
        "net(x).sum().backward()\neps = [0.1 * p.grad for p in net.parameters()]\n"
        "for p, e in zip(net.parameters(), eps):\n    p.add_(e)\nopt.zero_grad()\n"
        "net(x).sum().backward()\nfor p, e in zip(net.parameters(), eps):\n    p.sub_(e)\n"
        "opt.step()\n",
        (
            "    with torch.no_grad():\n        p.add_(e)",
            "    with torch.no_grad():\n        p.sub_(e)",
        ),
    ),
    "values with a gradient, into rows of what a hook made a leaf": (
        "table, wide = nn.Embedding(5, 3), nn.Linear(2, 6)\ntable.requires_grad_(False)\n"
        "table.register_forward_hook(lambda m, a, out: out.requires_grad_(True))\n"
        "def embed(ids, pixels):\n    slots = wide(pixels).view(-1, 2, 3)\n"
        "    rows = table(ids)\n    for i in range(len(ids)):\n        row = rows[i]\n"
        "        row.scatter_(0, torch.tensor([[0] * 3, [2] * 3]), slots[i])\n    return rows\n"
        "embed(torch.tensor([[0, 1, 2], [3, 4, 0]]), torch.rand(2, 2)).square().sum().backward()\n"
        "assert wide.weight.grad is not None\n",
        ("    rows = table(ids).clone()",),
    ),
    "starting values of rows, in a function that hands back the parameter": (
        "def begun(net, rows):\n    table = net[0].weight\n    for row in rows:\n"
        "        table[row] = table[:2].mean(0)\n    return table\n"
        "table = begun(net, [2, 3])\n",
        ("        with torch.no_grad():",),
    ),
    "a parameter's other name, and the result is computed from it": (
        "class Warp(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.shift = nn.Parameter(torch.ones(1, 2))\n    def forward(self, x):\n"
        "        shift = self.shift\n        shift[:, 0] *= 2.0\n        shift[:, 1] *= 3.0\n"
        "        moved = x[:, :2] + shift\n        return moved\n"
        "warp = Warp()\nwarp(x).sum().backward()\nassert warp.shift.grad.tolist() == [[10, 15]]\n"
        "assert warp.shift.tolist() == [[1, 1]]\n",
        ("        shift = shift.clone()", "        shift[:, 0] *= 2.0"),
    ),
    "a parameter scaled in every round of a loop": (
        "for _ in range(2):\n    w = net[0].weight\n    w /= w.norm()\n"
        "    loss = (x @ w.T).square().sum()\n    opt.zero_grad()\n    loss.backward()\n"
        "    opt.step()\n",
        ("    w = w / w.norm()",),
    ),
    "an argument that is normalised and handed back": (
        "def unit(v):\n    v.div_(v.norm())\n    return v\n"
        "loss = (x @ unit(net[0].weight).T).square().sum()\nloss.backward()\n",
        ("    v = v.div(v.norm())",),
    ),
    "the same with gradients from the last run": (
        "net(x).sum().backward()\ndef penalty(model):\n    total = 0.0\n"
        "    w = model[0].weight\n    w *= 0.5\n    total = total + w.square().sum()\n"
        "    return total\npenalty(net).backward()\n",
        ("    w = w * 0.5",),
    ),
    "starting values in a function that gives the model": (
        "def build():\n    model = nn.Linear(3, 2)\n    w = model.weight\n    w[:, 0] *= 2.0\n"
        "    return model\nbuild()(x).sum().backward()\n",
        ("    with torch.no_grad():\n        w[:, 0] *= 2.0",),
    ),
    "kept in bounds behind the step": (
        "def train():\n    loss = net(x).square().sum()\n    opt.zero_grad()\n"
        "    loss.backward()\n    opt.step()\n    w = net[2].weight\n    w.clamp_(-1, 1)\n"
        "    return loss.item(), w.norm().item()\ntrain()\n",
        ("    with torch.no_grad():\n        w.clamp_(-1, 1)",),
    ),
    "starting values handed back to nobody": (
        "def start(w):\n    w[0] *= 0.5\n    return w\nstart(net[0].weight)\n"
        "net(x).mean().backward()\n",
        ("    with torch.no_grad():\n        w[0] *= 0.5",),
    ),
    "an in-place function of a parameter, with whose value a method goes on": (
        "class Fuse(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.w = nn.Parameter(torch.ones(2))\n    def forward(self, x):\n"
        "        w = nn.functional.relu(self.w, inplace=True)\n        return x @ w\n"
        "fuse = Fuse()\nfuse(torch.ones(2)).backward()\n"
        "assert all(p.grad.sum() == 2 for p in fuse.parameters())\n",
        ("        w = nn.functional.relu(self.w.clone(), inplace=True)",),
    ),
    "no backward is to come": (
        "for p in net.parameters():\n    p.mul_(0.5)\nnet(x).mean().backward()\n",
        ("    with torch.no_grad():\n        p.mul_(0.5)\nnet(x).mean().backward()",),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_first_rewrite(name: str) -> None:
    text, lines = PROGRAMS[name]
    cells = cells_of(START + text)
    told = explained(cells)
    assert told.finding.cause in ("leaf_written", "view_of_leaf_written")
    assert told.finding.variant != "init" or "no backward" in name or "starting" in name
    assert told.rewrites
    new = edited(cells, told.rewrites[0])
    places = ["\n".join(new).find(line) for line in lines]
    assert -1 not in places and places == sorted(places)
    run(new)


POINTS = """class Points:
    def __init__(self, data):
        self._data = data
    def shift(self, by):
        self._data[..., 0] += by
        return self
"""


def test_an_object_of_a_package_writes_to_the_leaf_that_it_was_given(tmp_path: Path) -> None:
    """It is told at the call, and the object is given a copy."""
    text = (
        "class Face(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.marks = nn.Parameter(torch.rand(4, 2))\n    def forward(self, by):\n"
        "        points = Points(self.marks)\n        points.shift(by)\n"
        "        return points._data\nface = Face()\n# %%\n"
        "face(torch.ones(4)).sum().backward()\nassert face.marks.grad is not None\n"
    )
    with installed(tmp_path, "somepoints", POINTS):
        cells = cells_of(START.replace("nn\n", "nn\nfrom somepoints import Points\n", 1) + text)
        found = explained(cells)
        assert found.finding.cause == "view_of_leaf_written"
        assert "face.marks" in found.finding.tensors[0].names
        repaired = edited(cells, found.rewrites[0])
        assert "points = Points(self.marks.clone())" in "\n".join(repaired)
        run(repaired)


MASKED = """def masked(kind, features, keep=2):
    features[keep:] = 0
    return features * kind
"""


@pytest.mark.parametrize("given", ["features=self.clip", "features=self.clip, keep=1"])
def test_a_package_writes_to_a_leaf_that_it_was_given_by_a_name(tmp_path: Path, given: str) -> None:
    text = (
        "class Search(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.clip = nn.Parameter(torch.rand(4))\n    def forward(self, kind):\n"
        f"        out = masked(kind, {given})\n        return out.sum()\n"
        "search = Search()\n# %%\nsearch(2.0).backward()\n"
        "assert search.clip.grad[0] == 2 and search.clip.ne(0).all()\n"
    )
    with installed(tmp_path, "somemasks", MASKED):
        cells = cells_of(START.replace("nn\n", "nn\nfrom somemasks import masked\n", 1) + text)
        found = explained(cells)
        assert "search.clip" in found.finding.tensors[0].names
        repaired = edited(cells, found.rewrites[0])
        assert "features=self.clip.clone()" in "\n".join(repaired)
        run(repaired)


GENERATED = """
import copy
import torch
from torch import nn
torch.manual_seed(0)
net, gen = nn.Linear(3, 1), nn.Linear(2, 3)
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 1)
    def forward(self, w, x):
        self.fc.weight.copy_(w)
        return self.fc(x)
"""
OF_LAYER = "head = Head()\nhead(gen(torch.rand(1, 2)), torch.rand(4, 3)).sum().backward()"
OF_COPY = """x = torch.rand(4, 3)
slopes = torch.autograd.grad(net(x).square().sum(), list(net.parameters()), create_graph=True)
fast = [p - 0.1 * g for p, g in zip(net.parameters(), slopes)]
learner = copy.deepcopy(net)
for p, w in zip(learner.parameters(), fast):
    p.copy_(w)
learner(x).square().sum().backward()"""


@pytest.mark.parametrize(("cell", "leaf"), [(OF_LAYER, "gen.weight"), (OF_COPY, "net.weight")])
def test_a_computed_value_is_used_in_the_place_of_the_parameter(cell: str, leaf: str) -> None:
    cells = (GENERATED, cell)
    repaired = edited(cells, explained(cells).rewrites[0])
    assert "torch.func.functional_call(" in "".join(added(cells, repaired))
    run((*repaired, f"assert {leaf}.grad.abs().sum() > 0"))


def test_the_numbers_of_another_parameter_are_copied() -> None:
    cells = (GENERATED, "other = Head()\nother.fc.weight.copy_(net.weight)")
    repaired = edited(cells, explained(cells).rewrites[0])
    assert added(cells, repaired)[0] == "with torch.no_grad():"
