"""A graph that an object keeps from round to round: of the user's, or of an installed package.

A row is a notebook, the first name of the culprit, the blamed line, and the lines that the first
rewrite brings in.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from knowledge.played import added, edited, explained, play
from knowledge.test_cases import run
from notebook import installed

from autograd_explain.model import Certainty, What
from autograd_explain.render.topic_content import cells_of

LIBRARY = """\
import torch

class Trainer:
    def __init__(self, model):
        self.model = model
        self.opt = torch.optim.SGD(model.parameters(), lr=0.1)
    def fit(self, batches):
        for batch in batches:
            self.opt.zero_grad()
            self.model.training_step(batch).backward()
            self.opt.step()

class Scored:
    def __init__(self):
        self._value = None
    def add(self, x):
        self._value = None
    def result(self):
        if self._value is not None:
            return self._value
        self._value = self.compute()
        return self._value
    def move(self, device):
        self._value = None if self._value is None else self._value.to(device)

class Late:
    def __init__(self, net, x):
        self._how, self._memo = (net, x), {}

def distance(late, y):
    if ("value", 0) not in late._memo:
        net, x = late._how
        late._memo["value", 0] = net(x)
    return (late._memo["value", 0] - y).square().mean()

class Unseen:
    def __init__(self, model):
        self.model = model
    def fit(self, batches):
        opt = torch.optim.SGD(self.model.parameters(), lr=0.1)
        step = eval("lambda m, b: m.training_step(b)")  # nothing of it is in the text
        for batch in batches:
            opt.zero_grad()
            step(self.model, batch).backward()
            opt.step()

class Seen:
    def __init__(self, keys=None, size=2):
        self.keys = torch.ones(size, 3) if keys is None else keys

class Reader(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(3, 1)
    def forward(self, x, seen):
        seen.keys = torch.cat([seen.keys, x.tanh()])
        return self.out(seen.keys).square().mean()

class Hidden(Reader):
    forward = eval("lambda self, x, seen: Reader.forward(self, x, seen)")  # not in the text

class Out:
    def __init__(self, previous):
        self.previous = previous

class Schedule:
    def step(self, noise, x):
        return Out(0.9 * x - 0.1 * noise)

class Gain(torch.nn.Module):
    def __init__(self, gain):
        super().__init__()
        self.gain = gain
    def forward(self, x):
        return x * self.gain

class Bounds(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.limits = {"shift": eval("w.tanh() * 2", {"w": width})}

class Shifted(torch.nn.Module):
    def __init__(self, width, size=None):
        super().__init__()
        self.drawn = Bounds(width)
        self.lin = torch.nn.Identity() if size is None else torch.nn.Linear(size, size)
    def forward(self, x):
        return self.lin(x) + torch.rand(1) * self.drawn.limits["shift"]

class Rows:
    def __init__(self):
        self.rows, self.weigh = {}, torch.nn.Identity()
    def update(self, at, x):
        for k, row in enumerate(at.tolist()):
            self.rows[row] = (row, self.weigh(x[k]) * 2)
    def mean(self):
        rows = [row[1] for row in self.rows.values()]
        return torch.stack(rows).mean(0) if rows else torch.zeros(4)

class WeighedRows(Rows):
    def __init__(self):
        super().__init__()
        self.weigh = torch.nn.Linear(4, 4)

class Meter:
    def __init__(self):
        self.value = None
    def update(self, loss):
        self.value = loss if self.value is None else 0.9 * self.value + 0.1 * loss
        return self.value

class Rounds:
    def __init__(self, size):
        self.layers = [Meter() for _ in range(size)]

class Stack(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.lin = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(size))
    def forward(self, x, rounds):
        for lin, layer in zip(self.lin, rounds.layers):
            x = eval("m.update(f(x)).tanh()", {"m": layer, "f": lin, "x": x})
        return x

class CachedConv(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self._cache = torch.nn.Linear(3, 2), None
    def forward(self, x, weight):
        if self._cache is None:
            self._cache = weight / weight.sum(1, keepdim=True)
        return self._cache @ self.lin(x)

class Inner(torch.nn.Module):
    def __init__(self, cached=False):
        super().__init__()
        self.cached, self._cached_norm = cached, None
    def forward(self, x, weight):
        found = self._cached_norm
        if found is None:
            found = eval("w / w.sum()", {"w": weight})  # nothing of it is in the text
            if self.cached:
                self._cached_norm = found
        return eval("(x @ n).relu()", {"x": x, "n": found})

class Strategy:
    def __init__(self, weight):
        self.factor = weight.square() + 1

class Factored(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.strategy = torch.nn.Parameter(torch.ones(3)), None
    def _forget(self):
        self.strategy = None
    def train(self, mode=True):
        self._forget()
        return super().train(mode)
    def forward(self, x):
        if self.strategy is None:
            self.strategy = Strategy(self.weight)
        return x * self.strategy.factor

class Leaky(Factored):
    def forward(self, x):
        last = 0.0 if self.strategy is None else self.strategy
        self.strategy = (self.weight * x + last).tanh()
        return self.strategy

class SparseConv(torch.nn.Module):
    def __init__(self, size, cached=False):
        super().__init__()
        self.lin, self.cached, self._cached_edges = torch.nn.Linear(3, size), cached, None
    def forward(self, x, edges, weight):
        found = self._cached_edges
        if found is None:
            found = edges, weight / weight.sum()
            if self.cached:
                self._cached_edges = found
        return self.lin(x) * found[1].sum()

class Multistep:
    def __init__(self):
        self.outputs = [None, None]
    def step(self, x, out):
        self.outputs = [self.outputs[1], 0.9 * out]
        last = self.outputs[0]
        return Out(x - 0.1 * self.outputs[1] - (0.0 if last is None else 0.05 * last))

class Averaged:
    def __init__(self):
        self.noises = []
    def scaled(self, x):
        return x
    def step(self, noise, x):
        return self._average(noise, x)
    def _average(self, noise, x):
        if self.noises:
            noise = (noise + self.noises[-1]) / 2
        else:
            self.noises.append(noise)
        return Out(x - 0.1 * noise)
    def mean(self):
        return torch.stack(self.noises).mean(0)

class Kernel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self._memo = torch.nn.Parameter(torch.ones(3)), None
    def forward(self, x):
        if self._memo is None:
            self._memo = eval("s.exp().sin()", {"s": self.scale})  # nothing of it is in the text
        return eval("x * m", {"x": x, "m": self._memo})

class Approximate(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = Kernel()
    def forward(self, x):
        return eval("kernel(x)", {"kernel": self.kernel, "x": x})

class Warp(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size, self._grid = size, None
    def set_grid(self, shift):
        self._grid = torch.arange(self.size) + shift
    def forward(self, x):
        return x * self._grid.sin()

class Wrapped(torch.optim.Optimizer):
    def __init__(self, inner):
        self.inner = inner
    param_groups = property(lambda self: self.inner.param_groups)
    def step(self):
        eval("inner.step()", {"inner": self.inner})  # nothing of it is in the text

class Batch:
    def __init__(self, x):
        self.x = x

class Memory(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = torch.nn.GRUCell(3, 4)
        self.register_buffer("memory", torch.zeros(5, 4))
    def forward(self, rows, x):
        return self.cell(x, self.memory[rows])
    def update_state(self, rows, x):
        self.memory[rows] = self.cell(x, self.memory[rows])
"""
BEGIN = """# %%
import torch
from torch import nn
from keepslib import *
torch.manual_seed(0)
# %%
"""
STEPS = """
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
PROGRAMS: dict[str, tuple[str, str, str, list[str]]] = {
    "an option has a library keep it": (
        """
first = SparseConv(3, cached=True)
second = SparseConv(2, cached=True)
edges, w = torch.tensor([0, 1]), nn.Parameter(torch.ones(2))
opt = torch.optim.SGD([w, *first.parameters(), *second.parameters()], lr=0.1)
# %%
for _ in range(3):
    loss = second(first(torch.rand(2, 3), edges, w.exp()), edges, w.exp()).square().mean()
"""
        + STEPS,
        "second._cached_edges",
        "second = SparseConv(2, cached=True)",
        ["first = SparseConv(3, cached=False)", "second = SparseConv(2, cached=False)"],
    ),
    "a constructor computed it, and the rounds are those of a trainer of which nothing is seen": (
        """
class Net(nn.Module):
    def __init__(self, shapes):
        super().__init__()
        self.body, self.tower = nn.Linear(3, 4), nn.Linear(2, 4)
        self.shapes = shapes
        self.centres = self.tower(shapes).tanh()
    def training_step(self, x):
        return (self.body(x) @ self.centres.t()).square().mean()
net = Net(torch.rand(5, 2))
# %%
Unseen(net).fit(torch.rand(3, 4, 3))
""",
        "net.centres",
        "self.centres = self.tower(shapes).tanh()",
        ["", "@property", "def centres(self):", "return self.tower(self.shapes).tanh()"],
    ),
    "of several calls of a package's module the one that the loop leads to": (
        """
net = Approximate()
def shown(x):
    return net(x).sum().item()
def score(x):
    return net(x).square().mean()
x = nn.Parameter(torch.rand(4, 3))
opt = torch.optim.SGD([x], lr=0.1)
# %%
for _ in range(3):
    loss = score(x)
"""
        + STEPS,
        "net.kernel._memo",
        "return net(x).square().mean()",
        ["with torch.no_grad():", "score(x)"],
    ),
    "a package's batch gets what is computed of it": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.out = nn.Linear(3, 3), nn.Linear(3, 1)
    def forward(self, data):
        data.x = torch.tanh(self.enc(data.x))
        return self.out(data.x).square().mean()
net, graph = Net(), Batch(torch.rand(4, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
for _ in range(3):
    loss = net(graph)
"""
        + STEPS,
        "data.x",
        "data.x = torch.tanh(self.enc(data.x))",
        ["import copy", "data = copy.copy(data)"],
    ),
    "a constructor put it into a list": (
        """
class Mixed(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.supports = [*fixed]
        self.src, self.dst = nn.Parameter(torch.rand(3, 2)), nn.Parameter(torch.rand(2, 3))
        learned = torch.relu(self.src @ self.dst).softmax(1)
        self.supports.append(learned)
    def forward(self, x):
        for _ in range(2):
            x = x + sum(torch.tanh(x @ a) for a in self.supports)
        return x.square().mean()
net = Mixed([torch.eye(3), torch.ones(3, 3)])
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
for _ in range(3):
    loss = net(torch.rand(4, 3))
"""
        + STEPS,
        "net.supports[2]",
        "learned = torch.relu(self.src @ self.dst).softmax(1)",
        ["self.supports[2] = torch.relu(self.src @ self.dst).softmax(1)"],
    ),
    "what this round uses goes on in the next": (
        """
class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.head = nn.Linear(3, 4), nn.Linear(4, 1)
        self.register_buffer("history", torch.zeros(2, 4))
    def forward(self, x):
        table = self.history * 0.5 + self.lin(x)
        self.history = table
        return self.head(table).square().mean()
net = Table()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
for _ in range(3):
    loss = net(torch.rand(2, 3))
"""
        + STEPS,
        "table",
        "table = self.history * 0.5 + self.lin(x)",
        ["self.history = table.detach()"],
    ),
    "a trainer calls the method that keeps the state": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.memory = nn.GRUCell(3, 4), None
    def training_step(self, x):
        self.memory = self.cell(x, self.memory)
        return self.memory.square().mean()
# %%
Trainer(Net()).fit([torch.rand(2, 3) for _ in range(3)])
""",
        "self.memory",
        "self.memory = self.cell(x, self.memory)",
        [
            "self.memory = self.cell(x, None if self.memory is None else self.memory.detach())",
        ],
    ),
    "another item of the same dict is set elsewhere": (
        """
net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def collect():
    kept = {"x": [], "score": []}
    for _ in range(2):
        x = torch.rand(5, 3)
        kept["x"].append(x)
        kept["score"].append(net(x).log_softmax(1))
    rollout = {k: torch.cat(v) for k, v in kept.items()}
    rollout["weight"] = torch.rand(10, 1)
    return rollout
# %%
for _ in range(2):
    rollout = collect()
    for _ in range(3):
        new = net(rollout["x"]).log_softmax(1)
        loss = (rollout["weight"] * (new - rollout["score"]).exp()).mean()
"""
        + STEPS.replace("    ", "        "),
        "rollout['score']",
        "rollout = {k: torch.cat(v) for k, v in kept.items()}",
        ["rollout = {k: torch.cat(v).detach() for k, v in kept.items()}"],
    ),
    "a trainer of which nothing is seen, and a state that got another name first": (
        """
class Net(nn.Module):
    running = None
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 1)
    def training_step(self, x):
        loss = self.lin(x).sigmoid().square().mean()
        if self.running is not None:
            loss = 0.9 * loss + 0.1 * self.running
        self.running = loss
        return loss + 0.01 * self.lin.weight.square().sum()
net = Net()
# %%
Unseen(net).fit([torch.rand(2, 3) for _ in range(3)])
""",
        "net.running",
        "self.running = loss",
        ["self.running = loss.detach()"],
    ),
    "a trainer of which nothing is seen": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head, self.carry = nn.GRU(1, 4, batch_first=True), nn.Linear(4, 1), None
    def forward(self, x, h):
        out, last = self.rnn(x, h)
        return self.head(out).squeeze(-1), last
    def training_step(self, x):
        forecast, self.carry = self(x, self.carry)
        return forecast.square().mean()
net = Net()
# %%
Unseen(net).fit([torch.rand(2, 5, 1) for _ in range(3)])
""",
        "net.carry",
        "forecast, self.carry = self(x, self.carry)",
        ["forecast, carry = self(x, self.carry)", "self.carry = carry.detach()"],
    ),
    "a mean that a trainer's rounds carry on": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.mean = nn.Linear(3, 4), torch.zeros(4)
    def training_step(self, x):
        h = self.body(x)
        out = (h - self.mean).square().mean()
        self.mean = 0.9 * self.mean + 0.1 * h.mean(0)
        return out
net = Net()
# %%
Trainer(net).fit([torch.rand(2, 3) for _ in range(3)])
""",
        "net.mean",
        "self.mean = 0.9 * self.mean + 0.1 * h.mean(0)",
        ["self.mean = (0.9 * self.mean + 0.1 * h.mean(0)).detach()"],
    ),
    "a state that a call gives beside the result, in a loop of the user's": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head, self.carry = nn.GRU(1, 4, batch_first=True), nn.Linear(4, 1), None
    def forward(self, x, h):
        out, last = self.rnn(x, h)
        return self.head(out).squeeze(-1), last
    def training_step(self, x):
        forecast, self.carry = self(x, self.carry)
        return forecast.square().mean()
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
for x in [torch.rand(2, 5, 1) for _ in range(3)]:
    loss = net.training_step(x)
"""
        + STEPS,
        "net.carry",
        "forecast, self.carry = self(x, self.carry)",
        ["forecast, carry = self(x, self.carry)", "self.carry = carry.detach()"],
    ),
    "what a package computed goes on in a name of the loop": (
        """
net, schedule = nn.Linear(4, 4).requires_grad_(False), Schedule()
x = torch.rand(2, 4)
# %%
for _ in range(3):
    x.requires_grad_()
    x.retain_grad()
    out = schedule.step(net(x).tanh(), x)
    out.previous.square().sum().backward()
    x = out.previous - 0.1 * x.grad
""",
        "x",
        "x = out.previous - 0.1 * x.grad",
        ["x = x.detach()"],
    ),
    "the loss is kept under another name": (
        """
class Loop:
    def __init__(self, net):
        self.net, self.last = net, 0.0
    def step(self, x):
        loss = self.net(x).square().mean() + 0.1 * self.last
        loss.backward()
        self.last = loss
loop = Loop(nn.Linear(3, 1))
# %%
for _ in range(3):
    loop.step(torch.rand(4, 3))
""",
        "loop.last",
        "self.last = loss",
        ["self.last = loss.detach()"],
    ),
    "a package's object keeps a running value": (
        """
net, meter = nn.Linear(3, 1), Meter()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
for _ in range(3):
    loss = meter.update(net(torch.rand(4, 3)).square().mean())
"""
        + STEPS,
        "meter.value",
        "loss = meter.update(net(torch.rand(4, 3)).square().mean())",
        ["meter.value = meter.value.detach()"],
    ),
    "a package's object keeps a list of what it was given last": (
        """
net, schedule = nn.Linear(4, 4), Multistep()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.rand(2, 4)
# %%
for _ in range(4):
    x = schedule.step(x, net(x).tanh()).previous
    loss = x.square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    x = x.detach()
""",
        "schedule.outputs",
        "x = schedule.step(x, net(x).tanh()).previous",
        ["schedule.outputs = [s if s is None else s.detach() for s in schedule.outputs]"],
    ),
    "the one value that a package's object was handed": (
        """
class Sampler:
    def __init__(self, net):
        self.net, self.schedule = net, Averaged()
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
    def round(self, x):
        noise = self.net(self.schedule.scaled(x)).tanh()
        x = self.schedule.step(noise, x).previous
        loss = x.square().mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return x.detach()
sampler, x = Sampler(nn.Linear(4, 4)), torch.rand(2, 4)
# %%
for _ in range(3):
    x = sampler.round(x)
""",
        "self.schedule.noises",
        "x = self.schedule.step(noise, x).previous",
        ["self.schedule.noises = [s if s is None else s.detach() for s in self.schedule.noises]"],
    ),
    "layers whose work the text does not show": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Inner(cached=True), Inner(cached=True)
        self.lin, self.edge = nn.Linear(4, 2), nn.Parameter(torch.rand(4, 4))
    def forward(self, x):
        strength = self.edge.sigmoid()
        h = self.a(x, strength)
        return self.lin(self.b(h, strength))
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
for _ in range(3):
    loss = net(torch.rand(3, 4)).square().mean()
"""
        + STEPS,
        "net.b._cached_norm",
        "return self.lin(self.b(h, strength))",
        ["self.a, self.b = Inner(cached=False), Inner(cached=False)"],
    ),
    "a package's cache of layers, which a global object keeps": (
        """
class Trainer:
    def __init__(self, net):
        self.net, self.opt = net, torch.optim.SGD(net.parameters(), lr=0.1)
    def begin(self):
        self.cache = Rounds(2)
    def step(self, x):
        loss = self.net(x, self.cache).square().mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
    def read(self, rows):
        self.begin()
        for x in rows:
            self.step(x)
trainer = Trainer(Stack(2))
# %%
for rows in torch.rand(2, 3, 4, 3):
    trainer.read(rows)
""",
        "trainer.cache.layers[1].value",
        "loss = self.net(x, self.cache).square().mean()",
        ["for item in self.cache.layers:", "item.value = item.value.detach()"],
    ),
    "a package's layer has a cache": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.edge = CachedConv(), nn.Parameter(torch.rand(4, 4))
    def forward(self, x):
        return self.conv(x, self.edge.exp())
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
for _ in range(3):
    loss = net(torch.rand(4, 3)).square().mean()
"""
        + STEPS,
        "net.conv._cache",
        "return self.conv(x, self.edge.exp())",
        ["net.conv._cache = None"],
    ),
    "an object of the user's hands out what a package's base class has kept": (
        """
class Calibration(Scored):
    def __init__(self):
        super().__init__()
        self.scale, self.seen = nn.Parameter(torch.ones(3)), []
    def add(self, x):
        super().add(x)
        self.seen.append(x)
    def compute(self):
        return (torch.cat(self.seen) * self.scale.exp()).square().mean()
fitted = Calibration()
fitted.add(torch.rand(2, 3))
opt = torch.optim.SGD([fitted.scale], lr=0.1)
# %%
for _ in range(3):
    loss = fitted.result()
"""
        + STEPS,
        "fitted._value",
        "loss = fitted.result()",
        ["fitted._value = None"],
    ),
}


@pytest.fixture(autouse=True)
def library(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path, "keepslib", LIBRARY):
        yield


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text, shown, line, lines = PROGRAMS[name]
    cells = cells_of(BEGIN + text)
    found = explained(cells)
    finding = found.finding
    place = finding.place(What.CAUSE)
    assert finding.cause == "second_backward"
    assert (finding.tensors[0].names[0], place and place.source) == (shown, line)
    repaired = edited(cells, found.rewrites[0])
    assert added(cells, repaired) == lines
    run(repaired)


def test_a_state_is_told_where_it_is_kept_and_not_where_it_was_made() -> None:
    cells = cells_of(BEGIN + PROGRAMS["a trainer of which nothing is seen"][0])
    found = play(cells, watched=True).diagnosis
    cause = None if found is None else found.finding.event(What.CAUSE)
    assert found is not None and found.finding.tensors[0].names[0] == "net.carry"
    assert cause is not None and cause.certainty is Certainty.OBSERVED
    assert cause.place is not None
    assert cause.place.source == "forecast, self.carry = self(x, self.carry)"


HANDED = """
shift = nn.Parameter(torch.zeros(3))
reader, prefix = Reader(), Seen(torch.ones(2, 3))
opt = torch.optim.SGD([shift], lr=0.1)
def step(x):
    loss = reader(x + shift, prefix)
    opt.zero_grad()
    loss.backward()
    opt.step()
# %%
for _ in range(3):
    step(torch.rand(4, 3))
"""


def test_what_a_library_keeps_in_an_object_that_it_is_handed() -> None:
    cells = cells_of(BEGIN + HANDED)
    found = play(cells, watched=True).diagnosis
    assert found is not None and found.finding.tensors[0].names[0] == "prefix.keys"
    repaired = edited(cells, found.rewrites[0])
    line = "loss = reader(x + shift, copy.deepcopy(prefix))"
    assert added(cells, repaired) == ["import copy", line]
    run(repaired)


BY_METHOD = """
class Stream:
    def __init__(self, reader):
        self.reader, self.prefix = reader, Seen(torch.ones(2, 3))
    def loss(self, x):
        return self.reader(x + shift, self.prefix)
shift = nn.Parameter(torch.zeros(3))
stream = Stream(Hidden())
opt = torch.optim.SGD([shift], lr=0.1)
# %%
for _ in range(3):
    opt.zero_grad()
    loss = stream.loss(torch.rand(4, 3))
    loss.backward()
    opt.step()
"""

BY_MODULE = (
    BY_METHOD.replace("class Stream", "class Stream(nn.Module)")
    .replace("        self.reader,", "        super().__init__()\n        self.reader,")
    .replace("def loss", "def forward")
    .replace("stream.loss(", "stream(")
)


def test_what_an_attribute_holds_is_named_by_the_users_object() -> None:
    text = BY_MODULE.replace(
        "return self.reader(x + shift, self.prefix)",
        "h = self.reader(x + shift, self.prefix)\n        return h",
    )
    found = play(cells_of(BEGIN + text), watched=True).diagnosis
    names = ("stream.prefix.keys", "stream.prefix")
    assert found is not None and found.finding.tensors[0].names[:2] == names


@pytest.mark.parametrize(
    ("text", "shown", "line"),
    [
        (
            HANDED.replace("Reader()", "Hidden()"),
            "prefix.keys",
            "loss = reader(x + shift, copy.deepcopy(prefix))",
        ),
        (
            BY_METHOD,
            "stream.prefix.keys",
            "return self.reader(x + shift, copy.deepcopy(self.prefix))",
        ),
        (
            BY_MODULE,
            "stream.prefix.keys",
            "return self.reader(x + shift, copy.deepcopy(self.prefix))",
        ),
    ],
)
def test_what_is_kept_in_a_handed_object_is_told_after_the_fact(
    text: str, shown: str, line: str
) -> None:
    cells = cells_of(BEGIN + text)
    found = explained(cells)
    assert (found.finding.variant, found.finding.tensors[0].names[0]) == ("carried", shown)
    repaired = edited(cells, found.rewrites[0])
    assert added(cells, repaired) == ["import copy", line]
    run(repaired)


HANDED_ON = """
shift, reader = nn.Parameter(torch.zeros(3)), Hidden()
opt = torch.optim.SGD([shift], lr=0.1)
def step(x, memory):
    loss = reader(x + shift, memory)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return memory
# %%
for _ in range(2):
    memory = Seen(torch.ones(2, 3))
    for _ in range(3):
        memory = step(torch.rand(4, 3), memory)
"""


def test_an_object_that_the_loop_hands_on_is_told_and_not_copied() -> None:
    cells = cells_of(BEGIN + HANDED_ON)
    found = explained(cells)
    place = found.finding.place(What.CAUSE)
    names = ("memory.keys", "memory")
    assert (found.finding.variant, found.finding.tensors[0].names) == ("carried", names)
    assert place is not None and place.source == "memory = step(torch.rand(4, 3), memory)"
    repaired = edited(cells, found.rewrites[0])
    assert added(cells, repaired) == ["memory.keys = memory.keys.detach()"]
    run(repaired)


@pytest.mark.parametrize("made", ["Seen()", "Seen(size=size)"])
def test_a_memory_that_began_empty_is_not_copied(made: str) -> None:
    text = BY_METHOD.replace("Seen(torch.ones(2, 3))", made)
    cells = cells_of(BEGIN + "size = 2\n" + text)
    found = explained(cells)
    assert found.finding.variant == "carried"
    assert "deepcopy" not in edited(cells, found.rewrites[0])[1]


def test_a_memory_that_another_function_fills_is_copied() -> None:
    filled = """reader = Hidden()
def read(x):
    seen = Seen()
    with torch.no_grad():
        reader(x, seen)
    return seen
prefix = read(torch.rand(2, 3))
"""
    text = HANDED.replace("reader, prefix = Reader(), Seen(torch.ones(2, 3))\n", filled)
    cells = cells_of(BEGIN + text)
    repaired = edited(cells, explained(cells).rewrites[0])
    line = "loss = reader(x + shift, copy.deepcopy(prefix))"
    assert added(cells, repaired) == ["import copy", line]


def test_a_handed_object_that_each_round_makes_is_not_to_blame() -> None:
    text = """
shift, reader = nn.Parameter(torch.zeros(3)), Hidden()
opt = torch.optim.SGD([shift], lr=0.1)
scale = shift.exp()
# %%
for _ in range(3):
    prefix = Seen(torch.ones(2, 3))
    reader(scale[None] + 1, prefix)
    loss = reader(torch.rand(4, 3) * scale, prefix)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
    found = explained(cells_of(BEGIN + text))
    assert found.finding.tensors[0].names[0] == "scale"
    assert not any("deepcopy" in e.new_source for r in found.rewrites for e in r.edits)


def test_what_a_package_was_given_in_a_constructor_is_the_users() -> None:
    text = """
class Tone(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_gain = nn.Parameter(torch.zeros(1))
        self.curve = Gain(self.log_gain.exp())
    def forward(self, x):
        return self.curve(x)
net = Tone()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
for _ in range(3):
    loss = net(torch.rand(4, 3)).square().mean()
"""
    finding = explained(cells_of(BEGIN + text + STEPS)).finding
    place = finding.place(What.CAUSE)
    assert (finding.variant, finding.tensors[0].names[0]) == ("computed_once", "net.curve.gain")
    assert place is not None and place.source == "self.curve = Gain(self.log_gain.exp())"


def test_a_list_that_the_rounds_do_not_read_is_not_emptied_for_them() -> None:
    text = """
from torch.distributions import Categorical
class Rollout:
    def __init__(self):
        self.logp = []
    def collect(self, policy):
        for _ in range(4):
            dist = Categorical(logits=policy(torch.rand(3)))
            self.logp.append(dist.log_prob(dist.sample()))
        return self
def update(policy, opt, rollout):
    old = torch.stack(rollout.logp)
    for _ in range(3):
        loss = (policy(torch.rand(4, 3))[:, 0] - old).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
policy = nn.Linear(3, 2)
opt = torch.optim.SGD(policy.parameters(), lr=0.1)
# %%
for _ in range(2):
    rollout = Rollout().collect(policy)
    update(policy, opt, rollout)
"""
    found = explained(cells_of(BEGIN + text))
    assert {"old", "rollout.logp"} & set(found.finding.tensors[0].names)
    assert not any("clear()" in e.new_source for r in found.rewrites for e in r.edits)


MEMORY = """
memory, head = Memory(), nn.Linear(4, 1)
opt = torch.optim.SGD([*memory.parameters(), *head.parameters()], lr=0.1)
rows = torch.tensor([0, 2])
# %%
for _ in range(3):
    x = torch.rand(2, 3)
    loss = head(memory(rows, x)).square().mean()
    memory.update_state(rows, x)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_what_a_package_writes_into_its_buffer_is_cut_off_past_the_step() -> None:
    cells = cells_of(BEGIN + MEMORY)
    found = explained(cells)
    assert found.finding.cause == "step_between_backwards"
    repaired = edited(cells, found.rewrites[0])
    assert added(cells, repaired) == ["memory.memory = memory.memory.detach()"]
    run(repaired)


WRAPPED = """
gen, critic = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
opt = Wrapped(torch.optim.SGD(critic.parameters(), lr=0.1))
# %%
for _ in range(2):
    score = critic(gen(torch.rand(5, 2))).squeeze(1)
    loss, other = score.mean(), (1 - score).square().mean()
    loss.backward(retain_graph=True)
    opt.step()
    @
    other.backward()
"""


@pytest.mark.parametrize(("more", "line"), [("pass", "opt.step()"), ("opt.step()", None)])
def test_the_only_step_of_a_wrapped_optimizer_is_told(more: str, line: str | None) -> None:
    cells = cells_of(BEGIN + WRAPPED.replace("@", more))
    found = explained(cells)
    place = found.finding.place(What.CHANGED)
    assert found.finding.cause == "step_between_backwards"
    assert (place and place.source) == line
    if line is not None:
        run(edited(cells, found.rewrites[0]))


STORE = """
encoder, head, store = nn.Linear(3, 4), nn.Linear(4, 1), {}()
opt = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
# %%
for _ in range(3):
    events = encoder(torch.rand(2, 3))
    loss = head(events + store.mean()).square().mean()
    store.update(torch.tensor([0, 2]), x=events)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize("watched", [False, True])
def test_what_a_packages_store_was_handed_is_named(watched: bool) -> None:
    cells = cells_of(BEGIN + STORE.format("Rows"))
    found = play(cells, watched=watched).diagnosis
    assert found is not None and found.finding.tensors[0].names == ("events",)
    repaired = edited(cells, found.rewrites[0])
    changed = "store.update(torch.tensor([0, 2]), x=events.detach())"
    assert added(cells, repaired) == [changed]
    run(repaired)


def test_what_a_package_computes_by_its_own_parameters_is_not_what_it_was_handed() -> None:
    found = explained(cells_of(BEGIN + STORE.format("WeighedRows"))).finding
    assert found.cause == "second_backward" and "events" not in found.tensors[0].names


def test_what_a_packages_object_was_handed_before_the_loop_is_no_state() -> None:
    text = """
net, kept, head = nn.Linear(3, 3), Averaged(), nn.Linear(3, 3)
kept.step(net(torch.rand(4, 3)).tanh(), torch.rand(4, 3))
# %%
for _ in range(2):
    loss = (kept.mean() - head(torch.rand(4, 3))).square().mean()
    loss.backward()
"""
    found = explained(cells_of(BEGIN + text))
    assert found.finding.variant == "computed_once"


SET = """
class Pose(nn.Module):
    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(1))
    def forward(self):
        return self.shift.exp()
class Aligner:
    def __init__(self, pose):
        self.pose = pose
        self.warp = Warp(4)
        self.warp.set_grid(self.pose())
        self.opt = torch.optim.SGD(pose.parameters(), lr=0.1)
    def step(self, x):
        loss = self.warp(x).square().mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
# %%
aligner = Aligner(Pose())
for x in torch.rand(3, 4):
    aligner.step(x)
"""


def test_a_method_of_a_packages_object_sets_what_its_calls_read() -> None:
    found = explained(cells_of(BEGIN + SET))
    place = found.finding.place(What.CAUSE)
    assert found.finding.tensors[0].names[0] == "aligner.warp._grid"
    assert place is not None and place.source == "self.warp.set_grid(self.pose())"


SAME_NAME = """
class Surrogate(Approximate):
    pass
def fit(model, x):
    return model(x).sum().item()
def follow(model, x):
    opt = torch.optim.SGD([x], lr=0.1)
    for _ in range(3):
        loss = model(x).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
model, served = Surrogate(), Surrogate()
fit(model, torch.rand(4, 3))
# %%
follow(served, torch.rand(4, 3, requires_grad=True))
"""


def test_the_call_is_that_of_the_failing_functions_object() -> None:
    found = explained(cells_of(BEGIN + SAME_NAME)).finding.place(What.CAUSE)
    assert found is not None and found.source == "loss = model(x).sum()"


ONCE = """
class Encoder(nn.Linear):
    def encode(self, x):
        return Seen(hidden(self, x))
hidden = eval("lambda net, x: net(x).tanh()")
net, reader = Encoder(3, 3), Reader()
opt = torch.optim.SGD([*net.parameters(), *reader.parameters()], lr=0.1)
x = torch.rand(4, 3)
# %%
encoded = net.encode(x)
for _ in range(3):
    opt.zero_grad()
    loss = reader.out(encoded.keys).square().mean()
    loss.backward()
    opt.step()
"""


def test_what_a_packages_object_holds_from_before_the_loop_is_computed_in_it() -> None:
    cells, shown = cells_of(BEGIN + ONCE), "encoded.keys"
    found = explained(cells)
    assert (found.finding.variant, found.finding.tensors[0].names[0]) == ("computed_once", shown)
    repaired = edited(cells, found.rewrites[0])
    assert [line.strip() for line in added(cells, repaired)] == ["encoded = net.encode(x)"]
    run(repaired)


ASKED = """
scale = torch.zeros(3, requires_grad=True)
opt = torch.optim.SGD([scale], lr=0.1)
batches = torch.randn(3, 5, 3)
def fit():
    dist = torch.distributions.MultivariateNormal(
        torch.zeros(3), precision_matrix=torch.diag(scale.exp())
    )
    for x in batches:
        opt.zero_grad()
        loss = dist.covariance_matrix.trace() - dist.log_prob(x).mean()
        loss.backward()
        opt.step()
# %%
fit()
"""


@pytest.mark.parametrize("watched", [False, True])
def test_what_an_object_computes_when_asked_is_asked_of_another_in_each_round(
    watched: bool,
) -> None:
    cells = cells_of(BEGIN + ASKED)
    found = play(cells, watched=watched).diagnosis
    assert found is not None
    place = found.finding.place(What.CAUSE)
    assert place is not None and place.source.startswith("dist = ")
    repaired = edited(cells, found.rewrites[0])
    rows = [line.strip() for cell in repaired for line in cell.splitlines()]
    assert rows.index("for x in batches:") < rows.index(place.source.splitlines()[0])
    run(repaired)


LATE = (
    """
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.rand(4, 3), torch.rand(4, 2)
out = Late(net, x)
# %%
for _ in range(3):
    loss = distance(out, y)
"""
    + STEPS
)


@pytest.mark.parametrize("watched", [False, True])
def test_what_a_package_computes_of_an_object_and_keeps_unnamed_in_it(watched: bool) -> None:
    cells = cells_of(BEGIN + LATE)
    found = play(cells, watched=watched).diagnosis
    assert found is not None and found.finding.tensors[0].names[0] == "out"
    place = found.finding.place(What.CAUSE)
    assert place is not None and place.source == "out = Late(net, x)"
    repaired = edited(cells, found.rewrites[0])
    rows = [line.strip() for cell in repaired for line in cell.splitlines()]
    assert rows.index("for _ in range(3):") < rows.index(place.source)
    run(repaired)


GIVEN = """
class Jitter(nn.Module):
    def __init__(self, start=0.5):
        super().__init__()
        self.width = nn.Parameter(torch.tensor(start))
        self.shift = {}
    def forward(self, x):
        return self.shift(x)
net = Jitter()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
def step(x):
    return net(x).square().mean()
for _ in range(3):
    loss = step(torch.rand(4, 3))
"""


@pytest.mark.parametrize("watched", [False, True])
def test_what_a_package_computes_of_what_a_constructor_gives_it(watched: bool) -> None:
    cells = cells_of(BEGIN + GIVEN.format("Shifted(self.width)") + STEPS)
    found = play(cells, watched=watched).diagnosis
    assert found is not None
    place = found.finding.place(What.CAUSE)
    assert place is not None and place.source == "self.shift = Shifted(self.width)"
    assert found.finding.variant == "computed_once"
    repaired = edited(cells, found.rewrites[0])
    assert added(cells, repaired) == ["@property", "def shift(self):", "return Shifted(self.width)"]
    run(repaired)


def test_a_package_object_with_parameters_of_its_own_is_not_made_again() -> None:
    cells = cells_of(BEGIN + GIVEN.format("Shifted(self.width, 3)") + STEPS)
    found = explained(cells)
    assert not any("@property" in added(cells, edited(cells, r)) for r in found.rewrites)


EVALUATED = """
net = {}().eval()
opt = torch.optim.SGD({}, lr=0.1)
# %%
def follow(x):
    for _ in range(3):
        opt.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        opt.step()
        with torch.no_grad():
            x -= 0.1
# %%
follow(torch.ones(2, 3, requires_grad=True))
"""
SWITCHED = ["net.train()", "net.eval()"]


@pytest.mark.parametrize("watched", [False, True])
def test_what_training_mode_empties_is_emptied_before_the_call(watched: bool) -> None:
    cells = cells_of(BEGIN + EVALUATED.format("Factored", "net.parameters()"))
    found = play(cells, watched=watched).diagnosis
    assert found is not None
    assert found.finding.tensors[0].names[0] == "net.strategy.factor"
    repaired = [edited(cells, rewrite) for rewrite in found.rewrites]
    assert [[line.strip() for line in added(cells, new)] for new in repaired] == [SWITCHED]
    run(repaired[0])


def test_what_nothing_trains_is_filled_with_what_the_rounds_begin_with() -> None:
    cells = cells_of(BEGIN + EVALUATED.format("Factored", "[torch.ones(1)]"))
    found = explained(cells)
    repaired = edited(cells, found.rewrites[0])
    new = [line.strip() for line in added(cells, repaired)]
    assert new == ["with torch.no_grad():", "net(x)"]
    run(repaired)


def test_a_state_that_training_mode_would_begin_again_is_carried_on() -> None:
    cells = cells_of(BEGIN + EVALUATED.format("Leaky", "net.parameters()"))
    new = [added(cells, edited(cells, rewrite)) for rewrite in explained(cells).rewrites]
    assert any("net.strategy = net.strategy.detach()" in map(str.strip, lines) for lines in new)
    assert SWITCHED not in [[line.strip() for line in lines] for lines in new]
