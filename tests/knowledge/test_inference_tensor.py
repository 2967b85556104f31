"""Which inference mode made a tensor that an object keeps, or that a library holds."""

from __future__ import annotations

from pathlib import Path

from knowledge.played import added, edited, explained, play
from knowledge.test_cases import run
from notebook import installed

from autograd_explain.model import What

LIBRARY = """\
def attribute(model, inputs):
    inputs = (inputs,)
    inputs[0].requires_grad_()
    return model(inputs[0])
"""
STORE = """
import torch
from torch import nn
torch.manual_seed(0)
encoder, head = nn.Linear(3, 4), nn.Linear(4, 1)
class Bank:
    def __init__(self):
        self.frames, self.table = [], {}
    @torch.inference_mode()
    def build(self, clips):
        for chunk in clips.split(2):
            hidden = encoder(chunk)
            self.frames.append(hidden)
        return self
    def add(self, name, vectors):
        self.table[name] = vectors
    def __getitem__(self, key):
        return self.table[key] if isinstance(key, str) else self.frames[key]
    def __len__(self):
        return len(self.frames)
"""


def test_what_a_method_appends_under_inference_mode() -> None:
    loop = "for i in range(len(bank)):\n    head(bank[i]).sum().backward()"
    cells = (STORE, "bank = Bank().build(torch.rand(4, 3))", loop)
    found = explained(cells)
    place, made = found.finding.place(What.CAUSE), found.finding.place(What.CREATED)
    assert place is not None and place.source == "@torch.inference_mode()"
    assert made is not None and made.source == "hidden = encoder(chunk)"
    assert "bank.frames[0]" in found.finding.tensors[0].names
    repaired = edited(cells, found.rewrites[0])
    assert added(cells, repaired) == ["@torch.no_grad()"]
    run(repaired)


def test_what_a_library_was_given_out_of_an_object(tmp_path: Path) -> None:
    embed = "@torch.inference_mode()\ndef embed(x):\n    return encoder(x)"
    use = "from givenlib import attribute\nscores = attribute(head, bank['test'])"
    filled = "bank = Bank()\nbank.add('test', embed(torch.rand(4, 3)))"
    with installed(tmp_path, "givenlib", LIBRARY):
        finding = explained((STORE, embed, filled, use)).finding
    place = finding.place(What.CAUSE)
    assert (finding.cause, finding.variant) == ("inference_tensor", "flag")
    assert place is not None and (place.cell, place.line) == (2, 1)
    assert "bank['test']" in finding.tensors[0].names


TABLE = """
class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.cos = self.sin = None
    def forward(self, x):
        if self.cos is None:
            self.cos, self.sin = torch.arange(3.0).cos(), torch.arange(3.0).sin()
        return x * self.cos[:3] + x.flip(-1) * self.sin
net, table = nn.Linear(3, 3), Table()
def look(x):
    return table(net(x))
"""


def test_all_that_one_statement_reads_of_them_is_copied() -> None:
    before = "import torch\nfrom torch import nn\n" + TABLE
    filled = "mode = torch.inference_mode(True)\nwith mode:\n    look(torch.rand(2, 3))"
    cells = (before, filled, "look(torch.rand(2, 3)).sum().backward()")
    found = explained(cells)
    assert found.finding.cause == "inference_tensor"
    place = found.finding.place(What.CAUSE)
    assert place is not None and place.source.startswith("self.cos, self.sin = torch.arange(3.0)")
    new = [line for r in found.rewrites for line in added(cells, edited(cells, r))]
    both = "return x * self.cos.clone()[:3] + x.flip(-1) * self.sin.clone()"
    assert both in [line.strip() for line in new]


WEIGHTED = """
import torch
from torch import nn
from runslib import validate
class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.weight = nn.Linear(3, 2), torch.ones(2)
    def forward(self, x):
        return self.net(x) * self.weight
    def validation_end(self):
        self.weight = 0.5 + torch.rand(2)
model = Weighted()
"""
RUNS = """
import torch
@torch.inference_mode()
def validate(model):
    model.validation_end()
"""


def test_what_is_kept_since_the_constructor_is_told(tmp_path: Path) -> None:
    with installed(tmp_path, "runslib", RUNS):
        found = explained((WEIGHTED, "validate(model)", "model(torch.rand(4, 3)).sum().backward()"))
    place = found.finding.place(What.CAUSE)
    assert place is not None and place.source == "self.weight = 0.5 + torch.rand(2)"


METER = """
import torch
class Mean(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.reset()
    def reset(self):
        for name in ("total", "count"):
            setattr(self, name, torch.zeros(()))
    @torch.no_grad()
    def update(self, values):
        self.total += values.sum()
        self.count += len(values)
"""
METERED = """
import torch
from torch import nn
from meterlib import Mean
net = nn.Linear(3, 1)
net.error = Mean()
@torch.inference_mode()
def predict(x):
    return net(x)
def finish(meter):
    value = (meter.total / meter.count).item()
    meter.reset()
    return value
@torch.inference_mode()
def evaluate():
    net.error.update(predict(torch.rand(2, 3)))
    return finish(net.error)
"""


def test_what_an_object_of_a_library_keeps(tmp_path: Path) -> None:
    rounds = """for _ in range(2):
    out = net(torch.rand(4, 3))
    net.error.update(out.detach())
    finish(net.error), evaluate()"""
    cells = (METERED, rounds)
    with installed(tmp_path, "meterlib", METER):
        found = explained(cells)
        place = found.finding.place(What.CAUSE)
        assert (found.finding.cause, found.finding.variant) == ("inference_tensor", "written")
        assert found.finding.tensors[0].names[0] == "net.error.total"
        assert place is not None and (place.cell, place.line) == (1, 14)
        assert [r.fix for r in found.rewrites] == ["no_grad"]
        repaired = edited(cells, found.rewrites[0])
        run(repaired)
        assert play(repaired).diagnosis is None
