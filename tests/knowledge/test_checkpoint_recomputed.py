"""Checkpointed functions whose second run differs, and what is written instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from knowledge.played import edited, explained
from knowledge.test_cases import run
from notebook import installed

from autograd_explain.render.topic_content import cells_of

HEAD = """# %%
import random
import numpy as np
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0), random.seed({seed}), np.random.seed({seed})
"""

PROGRAMS = {
    "a flip of Python's coin": (
        """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
    def forward(self, x):
        if random.random() < 0.5:
            x = self.a(x).tanh()
        return x.sin()
blocks = nn.ModuleList(Block() for _ in range(8))
# %%
x = torch.randn(2, 4, requires_grad=True)
for block in blocks:
    x = checkpoint(block, x, use_reentrant=False)
x.sum().backward()
""",
        "random",
        "        if torch.rand(()).item() < 0.5:",
    ),
    "a number of NumPy's": (
        """
def deep(x):
    for _ in range(np.random.randint(1, 6)):
        x = x.sin()
    return x
# %%
x = torch.randn(2, 4, requires_grad=True)
sum(checkpoint(deep, x, use_reentrant=False).sum() for _ in range(6)).backward()
""",
        "random",
        "    for _ in range(torch.randint(1, 6, ()).item()):",
    ),
    "a matrix that a method remembers": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4))
        self.rotation = None
    def _turned(self):
        if self.rotation is None:
            self.rotation = torch.matrix_exp(self.w - self.w.T)
        return self.rotation
    def forward(self, x):
        return (x @ self._turned()).relu()
net = Net()
# %%
checkpoint(net, torch.randn(2, 4), use_reentrant=False).sum().backward()
""",
        "state",
        "        self.rotation = torch.matrix_exp(self.w - self.w.T)",
    ),
    "a counter of the object's": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.calls = nn.Linear(4, 4), 0
    def body(self, x):
        self.calls += 1
        return self.a(x).sin() if self.calls % 2 else x
    def forward(self, x):
        return checkpoint(self.body, x, use_reentrant=False)
net = Net()
# %%
net(torch.randn(2, 4)).sum().backward()
""",
        "state",
        "        return checkpoint(self.body, x, self.calls, use_reentrant=False)",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_runs_do_the_same(name: str) -> None:
    text, variant, line = PROGRAMS[name]
    cells = cells_of(HEAD.format(seed=1) + text)
    found = explained(cells)
    assert (found.finding.cause, found.finding.variant) == (
        "checkpoint_recomputed_differently",
        variant,
    )
    repaired = edited(cells, found.rewrites[0])
    assert any(line == new for cell in repaired for new in cell.splitlines())
    run(repaired)


def test_a_counter_is_left_where_another_call_would_miss_it() -> None:
    text = PROGRAMS["a counter of the object's"][0]
    cells = cells_of(HEAD.format(seed=1) + text.replace("net = Net()", "net = Net()\nnet.body(0)"))
    program = [cell.replace("\nnet.body(0)", "\nif 0: net.body(0)") for cell in cells]
    assert explained(program).rewrites == ()


#: A library's model that checkpoints its layers, as transformers' do.
ENCODER = """
from torch import nn
from torch.utils.checkpoint import checkpoint
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer.__call__, x, use_reentrant=False)
        return x
"""
HOOKED = """
from encoders import Encoder
class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.kept = nn.Linear(1, 4), None
    def forward(self):
        if self.kept is None:
            self.kept = self.net(torch.ones(1)).exp()
        return self.kept
shift = Shift()
seen, sizes = {}, []
def shifted(module, given, out):
    seen[module] = out
    sizes.append(out.shape)
    return out.sin() * shift()
net = Encoder()
for layer in net.layers:
    layer.register_forward_hook(shifted)
# %%
net(torch.randn(2, 4)).sum().backward()
"""


def test_what_a_hook_in_a_library_s_checkpoint_remembers(tmp_path: Path) -> None:
    cells = cells_of(HEAD.format(seed=1) + HOOKED)
    with installed(tmp_path, "encoders", ENCODER):
        found = explained(cells)
        assert found.finding.tensors[0].names == ("self.kept",)
        repaired = edited(cells, found.rewrites[0])
        assert "        self.kept = self.net(torch.ones(1)).exp()" in repaired[0].splitlines()
        run(repaired)


SWITCHED = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.plain = nn.Linear(4, 4), nn.Linear(4, 4), False
    def forward(self, x):
        return self.a(x) if self.plain or count else self.a(x) + self.b(x).sin()
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block, self.last = Block(), None
    def forward(self, x):
        return checkpoint(self.block, x, use_reentrant=False)
    def disable_extra(self):
        self.block.plain = True
    def enable_extra(self):
        self.block.plain = False
    def note(self, value):
        self.last = value
net, count = Net(), []
def reference(x):
    net.disable_extra()
    with torch.no_grad():
        return net(x)
# %%
x = torch.randn(2, 4)
y = net(x)
net.note(y)
loss = (y - reference(x)).square().sum()
loss.backward()
"""


@pytest.mark.parametrize("way", ["call", "attribute", "same block", "mode"])
def test_a_module_switched_before_the_second_run(way: str) -> None:
    text, line = SWITCHED, "        net.enable_extra()"
    if way == "attribute":
        text, line = text.replace("net.disable_extra()", "net.block.plain = True"), ""
    elif way == "same block":
        text = text.replace("    net.disable_extra()\n", "")
        text, line = text.replace("net.note(y)", "net.disable_extra()"), "net.enable_extra()"
    elif way == "mode":
        text = text.replace("net.disable_extra()", "net.eval()")
        text, line = text.replace("self.plain or", "not self.training or"), "        net.train()"
    cells = cells_of(HEAD.format(seed=1) + text)
    found = explained(cells)
    assert (found.finding.cause, found.finding.variant) == (
        "checkpoint_recomputed_differently",
        "mode",
    )
    assert found.finding.tensors[0].names[0] in ("net", "net.block")
    assert [r.fix for r in found.rewrites] == (["undo"] if line else [])
    for repaired in (edited(cells, r) for r in found.rewrites):
        assert any(line == new for cell in repaired for new in cell.splitlines())
        run(repaired)


@pytest.mark.parametrize("back", ["net.enable_extra()", "net.block.plain = False"])
def test_a_module_that_is_switched_back_is_not_blamed(back: str) -> None:
    text = SWITCHED.replace("loss.backward()", f"{back}\ncount += [1]\nloss.backward()")
    if "=" in back:
        text = text.replace("net.disable_extra()", "net.block.plain = True")
    found = explained(cells_of(HEAD.format(seed=1) + text))
    assert found.finding.cause == "checkpoint_recomputed_differently"
    assert not found.finding.variant
