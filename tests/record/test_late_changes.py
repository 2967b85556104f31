"""Gradients that are changed between a step, which has used them, and their clearing, or before
the backward that fills them."""

from __future__ import annotations

import pytest
from watching import signals

HEAD = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, norms = torch.randn(4, 3), []
def clip():
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
"""
LOOP = "for i in range(4):\n    opt.zero_grad()\n    net(x).pow(2).mean().backward()\n    "
EACH = "for p in net.parameters():\n        p.grad"

LATE = {
    "clipped": "opt.step()\n    nn.utils.clip_grad_norm_(net.parameters(), 1.0)",
    "by value": "opt.step()\n    nn.utils.clip_grad_value_(net.parameters(), 0.5)",
    "in a helper": "opt.step()\n    clip()",
    "each": f"opt.step()\n    {EACH}.mul_(0.5)",
    "one": "opt.step()\n    net.weight.grad[:, 0] = 0.0",
}
IN_TIME = {
    "before the step": "nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n    opt.step()",
    "measured": "opt.step()\n    norms.append(nn.utils.clip_grad_norm_(net.parameters(), 1e9))\n"
    "    norm = nn.utils.clip_grad_norm_(net.parameters(), 1e9)",
    "cleared by hand": f"opt.step()\n    {EACH}.zero_()",
    "nothing": "opt.step()\n    norms.append(net.weight.grad.norm())",
    "the next sum": "net(-x).sum().backward()\n    if i % 2:\n        opt.step()\n    clip()",
}


@pytest.mark.parametrize("clearing", ["before", "behind"])
@pytest.mark.parametrize("name", LATE)
def test_a_change_behind_the_step_is_told(name: str, clearing: str) -> None:
    loop = LOOP if clearing == "before" else LOOP.replace("opt.zero_grad()", "pass")
    end = "" if clearing == "before" else "\n    opt.zero_grad()"
    found = signals((HEAD, f"{loop}{LATE[name]}{end}"))
    assert [s.name for s in found] == ["gradients-changed-too-late"]
    assert found[0].moments["step"][0].place.source == "opt.step()"


@pytest.mark.parametrize("name", IN_TIME)
def test_other_changes_are_not(name: str) -> None:
    found = signals((HEAD, LOOP + IN_TIME[name]))
    assert "gradients-changed-too-late" not in {s.name for s in found}


CLIPPING = "nn.utils.clip_grad_norm_(net.parameters(), 1.0)"
ROUND = "for i in range(4):\n    opt.zero_grad()\n    loss = net(x).pow(2).mean()\n    "
END = "\n    loss.backward()\n    {}opt.step()"


@pytest.mark.parametrize("clip", [CLIPPING, "clip()"])
def test_clipping_before_backward_is_told(clip: str) -> None:
    (found,) = signals((HEAD, ROUND + clip + END.format("")))
    assert found.name == "gradients-changed-too-early"
    assert found.moments["early"][0].place.source == CLIPPING


FOUND = {
    "again behind it": (ROUND + "clip()" + END.format("clip()\n    "),),
    "what the round before left": (
        "for i in range(4):\n    loss = net(x).pow(2).mean()\n    clip()\n    opt.step()\n"
        "    opt.zero_grad()\n    loss.backward()",
    ),
    "a part that has none": (
        "unused = nn.Linear(2, 2)\nboth = nn.ModuleList([net, unused])",
        LOOP + f"{CLIPPING.replace('net', 'both')}\n    opt.step()",
    ),
    "a sum of two": (
        ROUND + "loss.backward()\n    clip()\n    net(-x).sum().backward()\n    opt.step()",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_clipping_what_is_there_is_not(name: str) -> None:
    found = signals((HEAD, *FOUND[name]))
    assert "gradients-changed-too-early" not in {s.name for s in found}
