"""A library asks for a gradient that the user's code, which it had called, has cut."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from knowledge.played import added, edited, explained, play
from knowledge.test_cases import run
from notebook import installed

from autograd_explain.model import What
from autograd_explain.render.topic_content import cells_of

LIBRARY = """\
import torch

class Trainer:
    def __init__(self, log=None):
        self.log = log

    def fit(self, module, batches):
        for batch in batches:
            self._step(module, batch)

    def _step(self, module, batch):
        out = module.training_step(batch)
        if self.log is not None:
            self.log(out)
        loss = out["loss"]
        loss.backward()

def attribute(forward, inputs):
    inputs = inputs.clone().requires_grad_()
    outputs = _run(forward, inputs)
    return torch.autograd.grad(torch.unbind(outputs), inputs)[0]

def _run(forward, inputs):
    return forward(inputs)

def attribute_all(forward, inputs):
    inputs = tuple(i.clone().requires_grad_() for i in inputs)
    return torch.autograd.grad(forward(*inputs), inputs)

class Loop:
    def __init__(self, module):
        self.module, self._step_fn = module, self._by_name

    def _by_name(self, batch):
        return _call(self.module, "training_step", batch)

    def fit(self, batches):
        for batch in batches:
            loss = self._step_fn(batch)
            loss.backward()

def _call(module, name, *given):
    return getattr(module, name)(*given)

class Cam:
    def __init__(self, model, layer):
        self.model, self.layer = model, layer

    def attribute(self, inputs):
        hook = self.layer.register_forward_hook(self._keep)
        outputs = self.model(inputs)
        hook.remove()
        return torch.autograd.grad(torch.unbind(outputs.sum(1)), self.kept)[0]

    def _keep(self, module, inputs, output):
        self.kept = output if output.requires_grad else output.detach().requires_grad_()

class Fitter:
    def __init__(self, model, loss_fn):
        self.model, self.loss_fn = model, loss_fn

    def fit(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()

class Measure(torch.nn.Module):
    def update(self, outputs, goal):
        with torch.no_grad():
            self.total = self.forward(outputs, goal)

    def compute(self):
        return self.total

    def forward(self, outputs, goal):
        return (outputs - goal).square().mean()

class Tapped:
    def __init__(self, layers, tap):
        self.layers = layers
        self.tap = tap

    def loss(self, x):
        return hand(self.tap, self.layers(x)).sum()

# Compiled elsewhere: without a source that could be run again.
exec("def hand(tap, values):\\n    tap(values)\\n    return values")
"""
BEGIN = """# %%
import numpy as np
import torch
from torch import nn
from callslib import *
torch.manual_seed(0)
x = torch.rand(4, 3)
# %%
"""
#: A notebook, the cause, the blamed line, and the lines that the first rewrite brings in; None
#: where none is asked for.
PROGRAMS: dict[str, tuple[str, str, str, list[str] | None]] = {
    "a training step detaches its loss": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 1), nn.Linear(3, 1)
    def parts(self, x):
        return [self.a(x).square().mean(), self.b(x).square().mean()]
    def training_step(self, x):
        total = sum(self.parts(x)).detach()
        return {"loss": total}
def show(out):
    return out["loss"] > 0.5
# %%
Trainer(show).fit(Net(), [x])
""",
        "graph_cut",
        "total = sum(self.parts(x)).detach()",
        ["total = sum(self.parts(x))"],
    ),
    "a measure is updated, and asked for its value": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.measure = nn.Linear(3, 1), Measure()
    def training_step(self, x):
        out = self.a(x)
        self.measure.update(out, x[:, :1])
        loss = self.measure.compute()
        return {"loss": loss}
# %%
Trainer().fit(Net(), [x])
""",
        "graph_cut",
        "self.measure.update(out, x[:, :1])",
        ["loss = self.measure(out, x[:, :1])"],
    ),
    "a decorated method several calls away": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 1)
    @torch.no_grad()
    def encode(self, x):
        return self.a(x)
    def shared(self, x):
        return self.encode(x).square()
    def training_step(self, x):
        return {"loss": self.shared(x).mean()}
    @torch.no_grad()
    def predict(self, x):
        return self.a(x) + 1
# %%
Trainer().fit(Net(), [x])
""",
        "grad_mode_off",
        "@torch.no_grad()",
        None,
    ),
    "what a function is given carries gradient": (
        """
frozen = nn.Linear(3, 3).requires_grad_(False)
def embed(v):
    return frozen(v.detach())
def score(v):
    return embed(v).sum(1)
# %%
attribute(score, x)
""",
        "graph_cut",
        "return frozen(v.detach())",
        ["return frozen(v)"],
    ),
    "the program has called the module with something else": (
        """
class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 3).requires_grad_(False), nn.Linear(3, 1)
    @torch.no_grad()
    def embed(self, v):
        return self.body(v)
    def forward(self, v):
        return self.head(self.embed(v)).sum(1)
probe = Probe()
probe(x).sum().backward()
# %%
attribute(probe, x)
""",
        "unused_in_graph",
        "@torch.no_grad()",
        [],
    ),
    "a mean of arrays of the modules in a list": (
        """
class Score(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 2)
    def forward(self, v):
        return torch.tanh(self.a(v))
class Committee:
    def __init__(self, parts):
        self.parts = parts
    def rate(self, v):
        rated = []
        for part in self.parts:
            rated.append(part(v).sum(1).detach().numpy())
        return torch.from_numpy(np.mean(rated, axis=0))
both = Committee([Score(), Score()])
# %%
attribute(both.rate, x)
""",
        "graph_cut",
        "rated.append(part(v).sum(1).detach().numpy())",
        ["rated.append(part(v).sum(1))", "return torch.mean(torch.stack(rated), axis=0)"],
    ),
    "two arrays meet": (
        """
early, late = nn.Linear(3, 1), nn.Linear(3, 1)
def higher(v):
    first = early(v)[:, 0].detach().numpy()
    second = late(v)[:, 0].detach().numpy()
    return torch.from_numpy(np.maximum(first, second))
# %%
attribute(higher, x)
""",
        "graph_cut",
        "first = early(v)[:, 0].detach().numpy()",
        [
            "first = early(v)[:, 0]",
            "second = late(v)[:, 0]",
            "return torch.maximum(first, second)",
        ],
    ),
    "an input that becomes integers": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 2)
    def forward(self, ids):
        return self.table((ids * 4).long()).sum((1, 2))
net = Net()
# %%
attribute(net, x)
""",
        "unused_in_graph",
        "return self.table((ids * 4).long()).sum((1, 2))",
        None,
    ),
    "one of several inputs": (
        """
def score(a, b):
    b = b.detach()
    return (a * b).sum()
# %%
attribute_all(score, [x, x + 1])
""",
        "unused_in_graph",
        "b = b.detach()",
        [],
    ),
    "the output of a layer that a function runs unrecorded": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 4), nn.Linear(4, 2)
    def features(self, x):
        return self.body(x).relu()
    def forward(self, x):
        with torch.no_grad():
            maps = self.features(x)
        return self.head(maps)
net = Net()
# %%
Cam(net, net.body).attribute(x)
""",
        "unused_in_graph",
        "with torch.no_grad():",
        ["maps = self.features(x)"],
    ),
    "a loss that is no number": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.criterion = nn.Linear(3, 1), nn.MSELoss(reduction="none")
    def forward(self, x):
        return self.a(x)
    def training_step(self, x):
        loss = self.criterion(self(x), torch.zeros(4, 1))
        return loss
    def validation_step(self, x):
        return self.criterion(self(x), torch.ones(4, 1))
# %%
Loop(Net()).fit([x])
""",
        "loss_not_scalar",
        "loss = self.criterion(self(x), torch.zeros(4, 1))",
        None,
    ),
    "a frozen model": (
        """
def prepare(net):
    for p in net.parameters():
        p.requires_grad = False
    return net
net = prepare(nn.Linear(3, 1))
# %%
Fitter(net, nn.functional.mse_loss).fit(x, torch.rand(4, 1))
""",
        "graph_cut",
        "p.requires_grad = False",
        None,
    ),
}


@pytest.fixture(autouse=True)
def library(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path, "callslib", LIBRARY):
        yield


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text, cause, line, lines = PROGRAMS[name]
    cells = cells_of(BEGIN + text)
    found = explained(cells)
    finding = found.finding
    place = finding.place(What.CAUSE)
    assert (finding.cause, place and place.source) == (cause, line)
    if lines is not None:
        repaired = edited(cells, found.rewrites[0])
        assert added(cells, repaired) == lines
        run(repaired)


def test_nobody_is_blamed_where_two_functions_may_be_the_one() -> None:
    text = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 1)
    def forward(self, v):
        return self.a(v).detach()
# %%
Fitter(Net(), lambda p, y: (p - y).square().mean().item() * torch.ones(())).fit(x, torch.rand(4, 1))
"""
    found = play(cells_of(BEGIN + text)).diagnosis
    assert found is not None
    assert found.finding.place(What.CAUSE) is None


WRITES_WHAT_IT_IS_HANDED = """
class Tap:
    def __call__(self, values):
        values.mul_(2.0)
# %%
{more}
loss = Tapped(nn.Sequential(nn.Linear(3, 3), nn.Sigmoid()), Tap()).loss(x)
# %%
loss.backward()
"""
COLLATED = """
def whitened(batch):
    values = torch.stack(batch)
    batch = values[0]
    batch.sub_(values.mean())
    return values
x = next(iter(torch.utils.data.DataLoader(x, 4, collate_fn=whitened)))
"""
ANOTHER = """
class Others:
    def after(self, values):
        values.add_(1.0)
"""


@pytest.mark.parametrize("more", ["", COLLATED])
def test_the_one_write_to_what_a_library_hands_over(more: str) -> None:
    found = explained(cells_of(BEGIN + WRITES_WHAT_IT_IS_HANDED.replace("{more}", more))).finding
    place = found.place(What.CHANGED)
    assert place is not None and place.source == "values.mul_(2.0)"


def test_of_two_such_writes_none_is_named() -> None:
    text = WRITES_WHAT_IT_IS_HANDED.replace("{more}", ANOTHER)
    found = explained(cells_of(BEGIN + text)).finding
    assert found.place(What.CHANGED) is None
