"""A write to what code that no run of the source gets to has made: told by names that are live."""

from __future__ import annotations

from typing import Any

import pytest
from knowledge.played import explained
from notebook import cells_of

from autograd_explain.model import Finding, What

CELLS = """# %%
import torch
code = "def attend(x, w):\\n    a = (x @ w).softmax(-1)\\n    return (a @ x).sum(), a"
exec(compile(code + "\\n\\ndef scale(a):\\n    a.mul_(2.0)", "/elsewhere/maps.py", "exec"))

def hide(maps, on=True):
    {hidden}
    return maps.square().sum()
# %%
w = torch.rand(3, 3, requires_grad=True)
for step in range(2):
    total, att = attend(torch.rand(3, 3), w)
    {used}
    loss.backward()
"""


@pytest.mark.parametrize(
    ("hidden", "used", "line"),
    [
        ("maps[:, 0] = 0.0", "loss = total + hide(att)", (1, 6)),
        ("pass", "att.clamp_(max=0.1); loss = total + hide(att)", (2, 4)),
    ],
)
def test_the_write_to_a_live_name_is_told(hidden: str, used: str, line: tuple[int, int]) -> None:
    found = explained(cells_of(CELLS.format(hidden=hidden, used=used))).finding
    changed = [e.place for e in found.events if e.what is What.CHANGED]
    assert [(p.cell, p.line) for p in changed if p is not None] == [line]


@pytest.mark.parametrize(
    ("hidden", "used"),
    [
        ("maps = maps.clone(); maps[:, 0] = 0.0", "scale(att); loss = total + hide(att)"),
        ("if not on: maps[:, 0] = 0.0", "scale(att); loss = total + hide(att)"),
        ("maps[:, 0] = 0.0", "hide(att.detach().clone()); scale(att); loss = total + att.sum()"),
        ("pass", "att.mul_(1.0); old = att; total, att = attend(att, w); scale(att); loss = total"),
    ],
)
def test_what_wrote_to_something_else_is_not_blamed(hidden: str, used: str) -> None:
    found = explained(cells_of(CELLS.format(hidden=hidden, used=used))).finding
    assert found.cause == "saved_value_overwritten"
    assert not [e for e in found.events if e.what is What.CHANGED]


MODULE = """# %%
import torch
from torch import nn
library = '''class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.key, self.out, self.pool = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)
    def forward(self, x):
        a = self.key(x).softmax(-1)
        x = self.out(a @ x)
        return self.pool(x).tanh(), (a, x + 1)

def scale(a):
    a.mul_(2.0)'''
exec(compile(library, "/elsewhere/attend.py", "exec"))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Attend()
    def encode(self, x):
        out, maps = self.inner(x)
        return out, maps
    def forward(self, x):
        pooled, maps = self.encode(x)
        {forward}
        return pooled.neg(), maps

def drop(maps, on=True):
    for each in maps:
        {drop}
    return sum(each.sum() for each in maps)
# %%
net = Net()
for step in range(2):
    pooled, maps = net(torch.rand(3, 3))
    {used}
    loss.backward()
"""
ADD = "for i in [0, 1]: pooled.index_add_(0, torch.tensor([i]), torch.ones(1, 3))"
ROWS = """for i in range(1, pooled.size(0)):
            pooled[i] *= 0.5
            pooled[i] += 1.0"""
PICKED = "for i in [[0, 1], [0, 2]]: pooled[i] -= 1.0"
BOTH = "loss = pooled.sum() + drop(maps)"
PART = "pooled, x = pooled * 1.0, scale(pooled); maps[1].mul_(2.0)"
OTHER = "old = pooled; pooled = pooled + 1; pooled.mul_(2.0); scale(old)"


def _lines(found: Finding[Any], what: What) -> list[str]:
    return [e.place.source for e in found.events if e.what is what and e.place is not None]


@pytest.mark.parametrize(
    ("forward", "drop", "used", "line", "name"),
    [
        ("pass", "each.diagonal().zero_()", BOTH, "each.diagonal().zero_()", "each"),
        (
            "pass",
            "pass",
            "maps[0][:, 1] = 0.0; loss = drop(maps)",
            "maps[0][:, 1] = 0.0",
            "maps[0]",
        ),
        (ADD, "pass", "loss = pooled.sum()", ADD, "pooled"),
        (ROWS, "pass", "loss = pooled.sum()", "pooled[i] *= 0.5", "pooled"),
        (PICKED, "pass", "loss = pooled.sum()", PICKED, "pooled"),
    ],
)
def test_the_write_to_a_part_of_what_a_module_returned(
    forward: str, drop: str, used: str, line: str, name: str
) -> None:
    cells = cells_of(MODULE.format(forward=forward, drop=drop, used=used))
    found = explained(cells).finding
    assert _lines(found, What.SAVED) == ["out, maps = self.inner(x)"]
    assert _lines(found, What.CHANGED)[0] in line and name in found.tensors[0].names


@pytest.mark.parametrize(
    ("forward", "drop", "used"),
    [
        ("pass", "if not on: each.mul_(2.0)", f"scale(maps[0]); {BOTH}"),
        ("pass", "each = each.clone(); each.mul_(2.0)", f"scale(maps[0]); {BOTH}"),
        ("pass", "each[[0, 1]].mul_(2.0)", f"scale(maps[0]); {BOTH}"),
        ("pass", ROWS.replace("pooled", "each.clone()"), f"scale(maps[0]); {BOTH}"),
        ("for i in range(len(x)): maps[1][i] *= 0.5", "pass", f"scale(maps[0]); {BOTH}"),
        (OTHER, "pass", "loss = pooled.sum()"),
        (PART, "pass", "loss = pooled.sum() + drop(maps)"),
    ],
)
def test_a_write_to_another_part_is_not_blamed(forward: str, drop: str, used: str) -> None:
    cells = cells_of(MODULE.format(forward=forward, drop=drop, used=used))
    found = explained(cells).finding
    assert found.cause == "saved_value_overwritten" and not _lines(found, What.CHANGED)


@pytest.mark.parametrize(
    "used",
    [
        "loss = (maps[0] * pooled).sum(); maps[0].mul_(2.0)",
        "again, _ = net(pooled); maps[0].mul_(2.0); loss = again.sum()",
    ],
)
def test_what_may_have_been_saved_elsewhere_has_no_saving_call(used: str) -> None:
    found = explained(cells_of(MODULE.format(forward="pass", drop="pass", used=used))).finding
    assert _lines(found, What.CHANGED) and "out, maps = self.inner(x)" not in _lines(
        found, What.SAVED
    )
