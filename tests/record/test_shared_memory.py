"""Arrays that share a tensor's memory: written inside helpers, found although no tensor is left."""

from __future__ import annotations

import ast
import textwrap
from typing import Any

import pytest
import torch
from knowledge.played import play

from autograd_explain.model import Role, What
from autograd_explain.record.detect.array_writes import writes_array, written_array
from autograd_explain.record.detect.finding import Mark
from autograd_explain.record.detect.hidden_overwrites import Overwrites
from autograd_explain.record.observe.event_log import EventLog

HEAD = """import numpy as np
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(5, 3)
"""
#: Definitions, the watched cell, the tensor's name, the writing line, a line that repairs it.
WRITERS = {
    "a helper sorts": (
        """
        def top(scores, k=2):
            arr = scores.detach().numpy()
            arr.sort()
            return float(arr[-k:].sum())
        """,
        "p = net(x).sigmoid()[:, 0]\nloss = p.square().sum()\nlog = (top(p), top(x.clone()[0]))\n"
        "loss.backward()",
        "p", "arr.sort()", "    arr = scores.detach().numpy().copy()",
    ),
    "a method writes by a mask": (
        """
        class Stats:
            def add(self, probs):
                a = probs.detach().numpy()
                a[a < 0.3] = 0.0
                self.seen = a.sum()
        stats = Stats()
        """,
        "p = net(x).sigmoid()\nloss = p.square().mean()\nstats.add(p)\nloss.backward()",
        "p", "a[a < 0.3] = 0.0", "        a = probs.detach().numpy().copy()",
    ),
    "an array that an object keeps": (
        """
        class Probe:
            def grab(self, h):
                self.arr = h.detach().numpy()
            def clear(self):
                self.arr.fill(0.0)
        probe = Probe()
        """,
        "h = net(x).tanh()\nprobe.grab(h)\nloss = (h * h).sum()\nprobe.clear()\nloss.backward()",
        "h", "self.arr.fill(0.0)", "        self.arr = h.detach().numpy().copy()",
    ),
    "in one expression": (
        """
        def median(t):
            t.detach().numpy().sort()
            return t[len(t) // 2].item()
        """,
        "h = net(x).exp()[:, 0]\nm = median(h)\nloss = h.sum()\nloss.backward()",
        "h", "t.detach().numpy().sort()", "",
    ),
    "parameters decayed between forward and backward": (
        """
        both = nn.Sequential(net, nn.Tanh(), nn.Linear(4, 1))
        def decay(model):
            for p in model.parameters():
                a = p.detach().numpy()
                a *= 0.9
        """,
        "loss = both(x).pow(2).mean()\ndecay(both)\nloss.backward()",
        "both[2].weight", "a *= 0.9", "loss.backward()\ndecay(both)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
def test_the_line_that_writes_the_array_is_found(name: str) -> None:
    definitions, cell, tensor, line, repaired = WRITERS[name]
    found = play((HEAD + textwrap.dedent(definitions), cell), watched=True).diagnosis
    assert found is not None and found.finding.cause == "silent_overwrite"
    culprit, changed = found.finding.tensor(Role.CULPRIT), found.finding.event(What.CHANGED)
    assert culprit is not None and tensor in culprit.names
    assert changed is not None and changed.place is not None and changed.place.source == line
    new = [e.new_source for r in found.rewrites[:1] for e in r.edits]
    assert repaired in "\n".join(new)


QUIET = {
    "weights looked at in training": (
        "for _ in range(3):\n    loss = net(x).tanh().pow(2).mean()\n"
        "    top = np.abs(net.weight.detach().numpy()).max()\n    now = net.bias.detach().numpy()\n"
        "    opt.zero_grad()\n    loss.backward()\n    opt.step()"
    ),
    "a fused optimizer writes": (
        "opt = torch.optim.Adam(net.parameters(), lr=0.1, fused=True)\nfor _ in range(3):\n"
        "    w = net.weight.detach().numpy()\n    loss = net(x).tanh().pow(2).mean()\n"
        "    opt.zero_grad()\n    loss.backward()\n    opt.step()\n    size = np.abs(w).sum()"
    ),
    "sorted once backward is over": (
        "for _ in range(3):\n    h = net(x).tanh()\n    opt.zero_grad()\n"
        "    h.pow(2).mean().backward()\n    h.detach().numpy().sort()\n    opt.step()"
    ),
    "a copy is sorted": (
        "p = net(x).sigmoid()\narr = p.detach().numpy().copy()\narr.sort()\np.sum().backward()"
    ),
}


@pytest.mark.parametrize("name", QUIET)
def test_reading_is_no_finding(name: str) -> None:
    assert play((HEAD, QUIET[name]), watched=True).diagnosis is None


def test_memory_that_nobody_else_has_is_let_go() -> None:
    overwrites = Overwrites(EventLog(), set())
    tensor = torch.ones(3)
    array = tensor.detach().numpy()
    overwrites.share(tensor.detach(), Mark(0, 0), here=True)
    del tensor
    overwrites.let_go()
    assert overwrites.memories  # the array may still be written
    del array
    overwrites.let_go()
    assert not overwrites.memories


def test_a_loop_that_reads_arrays_keeps_one_at_the_most() -> None:
    overwrites = Overwrites(EventLog(), set())
    for _ in range(5):
        values = torch.ones(3).exp()
        values.detach().numpy().sum()
        overwrites.share(values.detach(), Mark(0, 0), here=True)
    assert len(overwrites.memories) <= 2  # the last, and the one that `values` still holds


@pytest.mark.parametrize(
    ("code", "array"),
    [
        ("a[mask] = 0", "a"),
        ("a[0][1] += 2", "a"),
        ("self.a.sort()", "self.a"),
        ("np.random.shuffle(a)", "a"),
        ("np.add(x, y, out=a)", "a"),
        ("np.fill_diagonal(a, 0)", "a"),
        ("b = np.sort(a)", None),
        ("row['k'] = a", None),
        ("t = torch.sort(a)", None),
    ],
)
def test_what_writes_an_array(code: str, array: Any) -> None:
    (statement,) = ast.parse(code).body
    assert writes_array(statement) is (array is not None)
    assert array is None or written_array(statement) == array
