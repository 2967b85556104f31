"""Leaves that no optimizer has: whether their gradient is cleared between backwards."""

from __future__ import annotations

import pytest
from watching import signals

HEAD = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, d = torch.ones(2, 3), torch.zeros(3, requires_grad=True)
w, b = torch.ones(3, requires_grad=True), torch.zeros(1, requires_grad=True)
"""
LOOP = "for i in range(4):\n    "
DELTA = LOOP + "net(x + d).pow(2).sum().backward()\n    "
WEIGHTS = LOOP + "net(x).pow(2).sum().backward()\n    "
EACH = "with torch.no_grad():\n        for p in net.parameters():\n            p.sub_(0.1 * p.grad)"

#: The cell, and what it updates.
LEFT = {
    "through data": (DELTA + "d.data.add_(-0.1 * d.grad.sign())", ["d.data"]),
    "other memory": (DELTA + "d.data = (d.data - 0.1 * d.grad).clamp(-1, 1)", ["d"]),
    "in a loop over parameters": (WEIGHTS + EACH, ["p"]),
    "by a helper": (
        "def move(p, by):\n    p.data.add_(by, alpha=-0.1)\n" + DELTA + "move(d, d.grad)",
        ["p.data"],
    ),
    "by what was made of it": (
        "v = 0\n" + DELTA + "v = 0.9 * v + d.grad\n    for p, s in zip([d], [v]):\n"
        "        p.data -= s",
        ["p.data"],
    ),
    "two lines": (
        LOOP + "((x * w).sum(1) + b).pow(2).sum().backward()\n    "
        "with torch.no_grad():\n        w -= 0.1 * w.grad\n        b -= 0.1 * b.grad",
        ["w", "b"],
    ),
}
CLEARED = {
    "zeroed behind": DELTA + "d.data -= 0.1 * d.grad\n    d.grad.zero_()",
    "set to None": DELTA + "d.data -= 0.1 * d.grad\n    d.grad = None",
    "zeroed through data": DELTA + "d.data -= 0.1 * d.grad\n    d.grad.data.zero_()",
    "zeroed before": LOOP + "if d.grad is not None:\n        d.grad.zero_()\n    "
    "net(x + d).pow(2).sum().backward()\n    d.data -= 0.1 * d.grad",
    "another tensor": DELTA + "d.data -= 0.1 * d.grad\n    d.grad = torch.zeros_like(d)",
    "by the module": f"{WEIGHTS}{EACH}\n    net.zero_grad()",
    "a momentum": DELTA + "d.data -= 0.1 * d.grad\n    d.grad.mul_(0.9)",
    "one update of the sum": f"{DELTA}pass\nd.data -= d.grad",
    "clamped beside an optimizer": f"{LOOP}opt.zero_grad()\n    net(x).sum().backward()\n"
    "    opt.step()\n    net.weight.data.clamp_(-1, 1)",
    "moved by nothing that comes from it": f"{DELTA}d.data -= 0.1",
    "a gradient at moved weights": f"{WEIGHTS}r = 0.1 * net.weight.grad.sign()\n"
    "    net.weight.data.add_(r)\n    net(x).pow(2).sum().backward()\n"
    "    net.weight.data.sub_(r)\n    opt.step()\n    opt.zero_grad()",
}


@pytest.mark.parametrize("name", LEFT)
def test_a_gradient_that_nothing_clears_is_found(name: str) -> None:
    body, updated = LEFT[name]
    (found,) = signals((HEAD, body))
    assert found.name == "gradients-not-cleared"
    assert [m.target for m in found.moments["updated"]] == updated


@pytest.mark.parametrize("name", CLEARED)
def test_one_that_is_cleared_raises_no_alarm(name: str) -> None:
    assert signals((HEAD, CLEARED[name])) == []


ROWS = "y = (x * w).tanh().sum(1)\nrows, out = [], torch.zeros(2, 3)\n"
ROW = ROWS + "for i in range(2):\n    net.zero_grad()\n    y[i].backward(retain_graph=True)\n    "
SUMS = {
    "in a list": (ROW + "rows.append(w.grad.clone())", "rows.append(w.grad.clone())"),
    "in a row": (ROW + "out[i] = w.grad", "out[i] = w.grad"),
    "by a function": (
        "def slope(f, v):\n    f(v).backward()\n    return v.grad\n"
        "kept = [slope(f, w) for f in (torch.sum, torch.prod)]",
        "return v.grad",
    ),
}
#: What is read of a gradient that is cleared, of a new leaf, of one that an optimizer has, of the
#: whole sum alone, or only looked at.
WANTED = {
    "cleared behind": ROW + "rows.append(w.grad.clone())\n    w.grad.zero_()",
    "cleared before": ROW.replace("net.zero_grad()", "w.grad = None") + "rows.append(w.grad)",
    "a new leaf": "for i in range(3):\n    v = torch.ones(3, requires_grad=True)\n"
    "    net(v).sum().backward()\n    w.data += v.grad\n    kept = v.grad",
    "the sum": ROW + "pass\nkept = w.grad",
    "shown": ROW + "print(w.grad)",
    "a parameter's": ROW.replace("x * w", "net(x)") + "rows.append(net.weight.grad.norm())",
    "an optimizer's": "opt = torch.optim.SGD([w], lr=0.1)\n" + ROW
    + "rows.append(w.grad.norm())\nopt.step()",
    "moved by hand": DELTA + "g = d.grad\n    d.data -= 0.1 * g\n    d.grad.zero_()",
}  # fmt: skip


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_that_is_kept_again_and_again_is_found(name: str) -> None:
    body, line = SUMS[name]
    (found,) = signals((HEAD, body))
    assert found.name == "gradients-not-cleared"
    assert [m.place.source.strip() for m in found.moments["read"]] == [line]


@pytest.mark.parametrize("name", WANTED)
def test_what_is_read_of_a_gradient_may_be_meant(name: str) -> None:
    assert signals((HEAD, WANTED[name])) == []
