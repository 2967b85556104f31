"""Copies of modules that keep a result: what a library copies, and what another method goes on
with."""

from __future__ import annotations

import pytest
from knowledge.played import edited, explained, play
from knowledge.test_cases import run

from autograd_explain.model import What
from autograd_explain.render.topic_content import cells_of

MODEL = """# %%
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head, self.aux = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 1)
        self.tokens = None
    def forward(self, x):
        self.tokens = self.body(x)
        return self.head(self.tokens)
    def second(self):
        return self.aux(self.tokens)
model = Net()
model(torch.ones(2, 3))
# %%
mean = AveragedModel(model)
"""


def test_what_a_library_copies() -> None:
    cells = cells_of(MODEL)
    found = explained(cells)
    assert found.finding.cause == "deepcopy_non_leaf"
    new = edited(cells, found.rewrites[0])
    assert new[-1].strip() == "model.tokens = None\nmean = AveragedModel(model)"
    run(new)


@pytest.mark.parametrize(
    ("read", "kept"),
    [
        ("    def shown(self):\n        return self.tokens.mean().item()\n", True),
        ("    def shown(self):\n        return self.tokens.abs().mean()\n", False),  # a penalty
    ],
)
def test_a_pass_goes_on_with_what_it_stores_without_its_graph(read: str, kept: bool) -> None:
    new = "        tokens = self.body(x)\n        self.tokens = tokens.detach()\n"
    start, _, end = MODEL.partition("    def second")
    cells = cells_of(start + read + end[end.index("model =") :])
    found = explained(cells)
    repaired = edited(cells, found.rewrites[0])
    assert (new + "        return self.head(tokens)\n" in repaired[0]) is kept
    assert ("model.tokens = None" in repaired[-1]) is not kept
    run(repaired)


MEMOISED = """# %%
import copy
import torch
from torch import nn
class Memo:
    def __init__(self):
        self._known = {}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(2, 2)])
    def forward(self, x):
        self.parts[0].memo._known["w", x.shape] = self.parts[0].weight.exp(), 2
        return self.parts[0](x)
net = Net()
net.parts[0].memo = Memo()
net(torch.ones(1, 2))
# %%
best = copy.deepcopy(net)
"""


def test_a_result_without_a_name_is_told_by_what_holds_it() -> None:
    finding = explained(cells_of(MEMOISED)).finding
    assert finding.tensors[0].names == ("net.parts[0].memo._known",)


def test_nothing_takes_the_graph_of_what_another_method_reads() -> None:
    told = play(cells_of(MODEL), watched=True, verify=True).diagnosis
    assert told is not None
    edits = [e.new_source for r in told.rewrites for e in r.edits]
    assert edits and not any("detach()" in text or "nn.Parameter" in text for text in edits)


READS = {
    "a number of it is shown": ("print(model.tokens.abs().mean().item())", True),
    "an average of it, unrecorded": ("with torch.no_grad():\n    mean = model.tokens.mean()", True),
    "the one by which it is trained": ("loss = float(model.tokens.sum().backward() or 0)", False),
    "a function that may train": ("loss = float(train(model.tokens))", False),
}


@pytest.mark.parametrize("read", READS)
def test_kept_without_its_graph_where_it_is_only_looked_at(read: str) -> None:
    """A line behind the copy goes on reading it: dropped, there would be nothing."""
    line, looks = READS[read]
    train = "def train(x):\n    x.sum().backward()\n    return x.mean()\n"
    model = MODEL.replace("self.tokens = self", "self.tokens = x = self")
    model = model.replace("self.head(self.tokens)", "self.head(x)").replace("self.tokens)", "None)")
    found = explained(cells_of(f"{model}{train}{line}\n"))
    assert [r.fix for r in found.rewrites][:1] == ["detach" if looks else "drop"]


START = """# %%
import copy
import torch
from torch import nn
torch.manual_seed(0)
net, other = nn.Linear(3, 3), nn.Linear(3, 3)
"""
UNTRAINED = {
    "the state of an object, made by a method that others call": (
        "class Simulator:\n    def __init__(self):\n        self.state = torch.zeros(3)\n"
        "    def step(self, force):\n        self.state = self.state + net(force)\n"
        "        return self.state.sum()\n# %%\nsim = Simulator()\nsim.step(torch.ones(3))\n# %%\n"
        "trial = copy.deepcopy(sim)\nprint(trial.step(torch.zeros(3)).item())\n",
        "with torch.no_grad():\n    sim.step(torch.ones(3))",
    ),
    "targets of a teacher, beside a student that is trained": (
        "opt = torch.optim.SGD(other.parameters(), lr=0.1)\nbank = {}\n"
        "def fill(name, x):\n    bank[name] = {'x': x, 'y': net(x)}\n# %%\n"
        "fill('a', torch.ones(2, 3))\ncopied = copy.deepcopy(bank)\n"
        "loss = (other(copied['a']['x']) - copied['a']['y']).square().mean()\nloss.backward()\n",
        "    with torch.no_grad():\n        bank[name] = {'x': x, 'y': net(x)}",
    ),
    "two results of two statements": (
        "cache = {}\ncache['k'] = net(torch.ones(2, 3))\ncache['v'] = other(torch.ones(2, 3))\n"
        "# %%\nbranch = copy.deepcopy(cache)\n",
        "with torch.no_grad():\n    cache['v'] = other(torch.ones(2, 3))",
    ),
}


@pytest.mark.parametrize("name", UNTRAINED)
def test_what_nobody_trains_is_made_without_recording(name: str) -> None:
    text, wanted = UNTRAINED[name]
    cells = cells_of(START + text)
    found = explained(cells)
    assert found.finding.cause == "deepcopy_non_leaf"
    assert found.rewrites[0].fix == "no_grad"
    new = edited(cells, found.rewrites[0])
    assert any(wanted in cell for cell in new)
    run(new)


TRAINED = {
    "parameters that an optimizer has": (
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)\ncache = {'h': net(torch.ones(2, 3))}\n"
        "branch = copy.deepcopy(cache)\n"
    ),
    "parameters that are trained by hand": (
        "cache = {'h': net(torch.ones(2, 3))}\nbranch = copy.deepcopy(cache)\n"
        "branch['h'].sum().backward()\n"
    ),
    "a tensor that was flagged for its gradient": (
        "x = torch.ones(2, 3, requires_grad=True)\ncache = {'h': x * 2}\n"
        "branch = copy.deepcopy(cache)\n"
    ),
    "a result of which backward comes within the same call": (
        "def train(x):\n    h = net(x)\n    h.mean().backward()\n    net.zero_grad()\n"
        "    return {'h': h}\ncache = train(torch.ones(2, 3))\nbranch = copy.deepcopy(cache)\n"
    ),
}


@pytest.mark.parametrize("name", TRAINED)
def test_what_may_be_trained_stays_recorded(name: str) -> None:
    found = explained(cells_of(START + TRAINED[name]))
    assert found.finding.cause == "deepcopy_non_leaf"
    assert all(rewrite.fix != "no_grad" for rewrite in found.rewrites)


RUNNING = {
    "a buffer": (
        "        self.register_buffer('mean', torch.zeros(3))",
        "        self.mean = torch.lerp(x.mean(0), self.mean, 0.9)",
        "        self.mean = torch.lerp(x.mean(0), self.mean, 0.9).detach()",
    ),
    "an attribute": (
        "        self.mean = torch.zeros(3)",
        "        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)",
        "        self.mean = (0.9 * self.mean + 0.1 * x.mean(0)).detach()",
    ),
    "a buffer that is written in place": (
        "        self.register_buffer('mean', torch.zeros(3))",
        "        self.mean.mul_(0.9).add_(0.1 * x.mean(0))",
        "        with torch.no_grad():\n            self.mean.mul_(0.9).add_(0.1 * x.mean(0))",
    ),
}
CENTRED = """class Centred(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 3)
{begin}
    def forward(self, x):
        x = self.net(x)
{line}
        return x - self.mean.detach()
model = Centred()
model(torch.ones(2, 3)).sum().backward()
# %%
ema = copy.deepcopy(model)
"""


@pytest.mark.parametrize("name", RUNNING)
def test_a_running_value_is_kept_without_its_graph(name: str) -> None:
    begin, line, wanted = RUNNING[name]
    cells = cells_of(START + CENTRED.format(begin=begin, line=line))
    found = explained(cells)
    place = found.finding.place(What.CAUSE)
    assert place is not None and place.source.strip() == line.strip()
    assert [r.fix for r in found.rewrites] == ["detach_running"]
    new = edited(cells, found.rewrites[0])
    assert wanted in new[0]
    run(new)


def test_what_is_no_running_value_keeps_its_graph() -> None:
    text = CENTRED.format(begin="", line="        self.mean = x.mean(0)")
    found = explained(cells_of(START + text.replace(".detach()", "")))
    assert "detach_running" not in [r.fix for r in found.rewrites]
