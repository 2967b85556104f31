"""A write to what code that no run of the source gets to has made: told by names that are live."""

from __future__ import annotations

import pytest
from knowledge.played import explained
from notebook import cells_of

from autograd_explain.model import What

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
