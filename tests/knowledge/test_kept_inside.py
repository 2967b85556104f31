"""State with its graph somewhere inside an object: a cache of layers, a solver's earlier outputs, a
memory's entries, a copied model's parts.

A row is a notebook, the cause, a name of the culprit ("" for any), and the lines that the first
rewrite brings in.  What is repaired runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from knowledge.played import added, edited, explained
from knowledge.test_cases import run
from notebook import installed

from autograd_explain.render.topic_content import cells_of

LIBRARY = """\
import torch
from torch import nn

class CacheLayer:
    def __init__(self):
        self.keys, self.values = None, None
    def update(self, k, v):
        self.keys = k if self.keys is None else torch.cat([self.keys, k], 1)
        self.values = v if self.values is None else torch.cat([self.values, v], 1)
        return self.keys, self.values

class Cache:
    def __init__(self):
        self.layers = []
    def update(self, k, v, index):
        while len(self.layers) <= index:
            self.layers.append(CacheLayer())
        return self.layers[index].update(k, v)

class Output:
    def __init__(self, logits, past):
        self.logits, self.past = logits, past

class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(4, 12) for _ in range(2))
    def forward(self, x, past=None):
        past = Cache() if past is None else past
        for i, block in enumerate(self.blocks):
            q, k, v = block(x).chunk(3, -1)
            k, v = past.update(k, v, i)
            x = x + (q @ k.transpose(1, 2)).softmax(-1) @ v
        return Output(x, past)

class Solver:
    def __init__(self, order=2):
        self.order = order
        self.outputs = [None] * order
    def step(self, output, sample):
        self.outputs = [*self.outputs[1:], output]
        known = [o for o in self.outputs if o is not None]
        return sample - sum(known) / len(known)

class Memory:
    def __init__(self):
        self.store = {}
    def read(self, key):
        return self.store.get(key, 0.0)
    def write(self, key, value):
        self.store[key] = value
"""
BEGIN = """# %%
import copy
import torch
from torch import nn
from statelib import *
torch.manual_seed(0)
# %%
"""
CACHE = """
net = Decoder()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
past = None
# %%
for x in torch.randn(3, 2, 5, 4):
    out = net(x, past=past)
    past = out.past
    opt.zero_grad()
    out.logits.square().mean().backward({})
    opt.step()
"""
LAYERS = [
    "for layer in past.layers:",
    "layer.keys = layer.keys.detach()",
    "layer.values = layer.values.detach()",
]
SOLVER = """
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
solver, x = Solver(), torch.randn(3, 4)
# %%
for _ in range(3):
    x = solver.step(net(x), x.detach())
    opt.zero_grad()
    x.square().mean().backward({})
    opt.step()
    x = x.detach()
"""
OUTPUTS = ["solver.outputs[:] = [None if v is None else v.detach() for v in solver.outputs]"]
MODEL = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.memory = nn.Linear(4, 4), Memory()
    def forward(self, x):
        h = torch.tanh(self.body(x) + self.memory.read("h"))
        self.memory.write("h", h)
        self.memory.write("twice", 2 * h)
        return h
net = Net()
"""
PROGRAMS: dict[str, tuple[str, str, str, list[str]]] = {
    "a cache that an output hands on": (
        CACHE.format(""),
        "second_backward",
        "past.layers[1].values",
        LAYERS,
    ),
    "a cache, the graph kept, and a step": (
        CACHE.format("retain_graph=True"),
        "step_between_backwards",
        "",
        LAYERS,
    ),
    "the name gets the cache after the step": (
        """
net = Decoder()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
past = None
# %%
for x in torch.randn(3, 2, 5, 4):
    out = net(x, past=past)
    opt.zero_grad()
    out.logits.square().mean().backward()
    opt.step()
    past = out.past
""",
        "second_backward",
        "past.layers[1].values",
        LAYERS,
    ),
    "a solver's earlier outputs": (
        SOLVER.format(""),
        "second_backward",
        "solver.outputs[0]",
        OUTPUTS,
    ),
    "a solver's earlier outputs, the graph kept": (
        SOLVER.format("retain_graph=True"),
        "step_between_backwards",
        "",
        OUTPUTS,
    ),
    "a memory inside a model, in a function": (
        MODEL
        + """
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def train(x):
    loss = net(x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
# %%
for x in torch.randn(3, 2, 4):
    train(x)
""",
        "second_backward",
        "",
        [
            "for key, value in net.memory.store.items():",
            "net.memory.store[key] = value.detach()",
        ],
    ),
    "a list of states, each read in the round that made it": (
        """
cells, head = nn.ModuleList([nn.GRUCell(3, 3), nn.GRUCell(3, 3)]), nn.Linear(3, 1)
hs = [torch.zeros(2, 3) for _ in cells]
# %%
for x in torch.randn(4, 2, 3):
    for i, cell in enumerate(cells):
        hs[i] = cell(x, hs[i])
        x = hs[i]
    head(x).square().mean().backward()
""",
        "second_backward",
        "hs",
        ["hs[:] = [v.detach() for v in hs]"],
    ),
    "pairs of keys and values, a tuple for each layer": (
        """
class Old(Decoder):
    def forward(self, x, past=None):
        pairs = []
        for i, block in enumerate(self.blocks):
            q, k, v = block(x).chunk(3, -1)
            if past is not None:
                k, v = torch.cat([past[i][0], k], 1), torch.cat([past[i][1], v], 1)
            pairs.append((k, v))
            x = x + (q @ k.transpose(1, 2)).softmax(-1) @ v
        return x, tuple(pairs)
net, past = Old(), None
# %%
for x in torch.randn(3, 2, 5, 4):
    y, past = net(x, past)
    y.square().mean().backward()
""",
        "second_backward",
        "past[1][0]",
        ["past = tuple(tuple(v.detach() for v in item) for item in past)"],
    ),
    "a copy of a model with a memory": (
        MODEL
        + """
net(torch.ones(2, 4)).sum().backward()
# %%
best = copy.deepcopy(net)
""",
        "deepcopy_non_leaf",
        "net.memory.store['h']",
        [
            "best = copy.deepcopy(net, "
            "memo={id(t): t.detach().clone() for t in net.memory.store.values()})",
        ],
    ),
    "a library copies a model with a memory": (
        MODEL
        + """
net(torch.ones(2, 4)).sum().backward()
# %%
mean = torch.optim.swa_utils.AveragedModel(net)
""",
        "deepcopy_non_leaf",
        "net.memory.store['h']",
        [
            "for key, value in net.memory.store.items():",
            "net.memory.store[key] = value.detach()",
        ],
    ),
}


@pytest.fixture(autouse=True)
def library(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path, "statelib", LIBRARY):
        yield


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text, cause, shown, lines = PROGRAMS[name]
    cells = cells_of(BEGIN + text)
    found = explained(cells)
    assert found.finding.cause == cause
    assert not shown or shown in found.finding.tensors[0].names
    repaired = edited(cells, found.rewrites[0])
    assert added(cells, repaired) == lines
    run(repaired)


def test_what_a_round_only_reads_is_no_state() -> None:
    """The output of an encoder, computed once: cutting it behind the round is not what repairs."""
    found = explained(
        cells_of(
            BEGIN
            + """
net, head = Decoder(), nn.Linear(4, 1)
enc = net(torch.randn(2, 5, 4))
# %%
for _ in range(3):
    head(enc.logits).mean().backward()
"""
        )
    )
    assert found.finding.variant == "computed_once"
    assert not any("for layer in" in e.new_source for r in found.rewrites for e in r.edits)


def test_what_is_only_looked_at_comes_after_the_state() -> None:
    """The model keeps a value of each round too, which no round reads: the state is another one."""
    cells = cells_of(
        BEGIN
        + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head, self.seen = nn.GRUCell(3, 3), nn.Linear(3, 1), []
    def forward(self, x, h):
        h = self.cell(x, h)
        self.seen = [h * 2]
        return self.head(h), h
net, h = Net(), torch.zeros(2, 3)
# %%
for x in torch.randn(4, 2, 3):
    y, h = net(x, h)
    y.square().mean().backward()
"""
    )
    found = explained(cells)
    assert added(cells, edited(cells, found.rewrites[0])) == ["h = h.detach()"]


def test_a_copy_that_is_made_before_the_first_round_too() -> None:
    cells = cells_of(
        BEGIN
        + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.last = nn.Linear(4, 4), None
    def forward(self, x):
        self.last = self.body(x)
        return self.last.sum()
net = Net()
# %%
copies = []
for x in torch.randn(3, 2, 4):
    copies.append(copy.deepcopy(net))
    net(x).backward()
print(net.last)
"""
    )
    found = explained(cells)
    repaired = edited(cells, found.rewrites[0])
    assert "for t in (net.last,) if t is not None}" in repaired[-1]
    run(repaired)


def test_what_another_method_reads_with_its_graph_is_not_cut_for_a_copy() -> None:
    """The loss of the copied round is still to come: only the copy has no graph."""
    cells = cells_of(
        BEGIN
        + MODEL
        + """
h = net(torch.ones(2, 4))
# %%
before = copy.deepcopy(net)
(h.sum() + net.memory.read("h").sum()).backward()
"""
    )
    found = explained(cells)
    edits = [line for r in found.rewrites for line in added(cells, edited(cells, r))]
    assert edits and all("deepcopy(net, memo=" in line for line in edits)
    run(edited(cells, found.rewrites[0]))
