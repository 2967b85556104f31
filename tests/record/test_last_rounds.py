"""Losses of a loop of which a backward behind it takes the last one: a fault where no round
builds on the one before."""

from __future__ import annotations

import pytest
from record.watching import signals

HEAD = (
    "import torch\nimport torch.nn.functional as F\nfrom torch import nn\ntorch.manual_seed(0)\n"
    "net = nn.Linear(3, 3)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    "xs = torch.randn(4, 2, 3)\n"
)
END = "opt.zero_grad()\nloss.backward()\nopt.step()\n"

WRONG = {
    "batches": """
for x in xs:
    loss = net(x).square().mean()
"""
    + END,
    "cleared in the loop": """
for epoch in range(2):
    for x in xs:
        opt.zero_grad()
        out = net(x)
        loss = F.mse_loss(out, x)
        print(loss.item())
    loss.backward()
    opt.step()
""",
    "steps in time": """
def train():
    total = 0.0
    for t in range(3):
        loss = (net(xs[t]) - xs[t + 1]).abs().mean()
        total += loss.item()
    loss = loss / 3
    opt.zero_grad()
    loss.backward()
    opt.step()
train()
""",
    "a penalty": """
for name, p in net.named_parameters():
    reg = p.norm()
loss = net(xs[0]).mean()
opt.zero_grad()
(loss + 0.1 * reg).backward()
opt.step()
""",
    "a sum that nobody uses": """
total = 0
for x in xs:
    loss = net(x).mean()
    total += loss
"""
    + END,
    "a next batch": """
batches = iter(xs)
for _ in range(3):
    x = next(batches)
    with torch.enable_grad():
        loss = net(x).mean()
"""
    + END,
}


@pytest.mark.parametrize("cell", WRONG.values(), ids=WRONG)
def test_only_the_last_round_is_trained_on(cell: str) -> None:
    (found,) = signals((HEAD, cell))
    assert found.name == "last-round-only"
    assert found.evidence["rounds"] in (2, 3, 4)


@pytest.mark.parametrize(
    ("name", "each", "total"),
    [
        ("batches", False, ""),
        ("cleared in the loop", True, ""),
        ("a sum that nobody uses", False, "total"),
    ],
)
def test_what_the_program_shows(name: str, each: bool, total: str) -> None:
    (found,) = signals((HEAD, WRONG[name]))
    assert (found.evidence["each"], found.evidence["sum"]) == (each, total)


RIGHT = {
    "a model of each round": """
for rate in (0.1, 0.01):
    net = nn.Linear(3, 3)
    opt = torch.optim.SGD(net.parameters(), lr=rate)
    loss = net(xs[0]).mean() * rate
"""
    + END,
    "warm-up without a graph": """
for x in xs:
    with torch.no_grad():
        loss = net(x).mean()
loss = net(xs[0]).mean()
"""
    + END,
    "a state in the graph": """
h = torch.zeros(2, 3)
for x in xs:
    h = net(h + x)
    loss = h.square().mean()
"""
    + END,
    "a state without one": """
h = torch.zeros(2, 3)
for x in xs:
    out = net(h + x)
    h = out.detach()
    loss = out.square().mean()
"""
    + END,
    "a list that is summed": """
losses = []
for x in xs:
    loss = net(x).mean()
    losses.append(loss)
loss = torch.stack(losses).sum()
"""
    + END,
    "the best one": """
best = net(xs[0]).mean()
for x in xs:
    loss = net(x).mean()
    best = torch.min(best, loss)
loss = best
"""
    + END,
    "derivatives in the loop": """
for x in xs:
    loss = net(x).mean()
    grads = torch.autograd.grad(loss, net.weight)
loss = net(xs[0]).mean()
"""
    + END,
    "a search": """
for x in xs:
    loss = net(x).mean()
    if loss < 0:
        break
"""
    + END,
    "a closure": """
opt = torch.optim.LBFGS(net.parameters(), max_iter=3)
for epoch in range(2):
    def closure():
        opt.zero_grad()
        loss = net(xs[0]).square().mean()
        loss.backward()
        return loss
    opt.step(closure)
""",
    "evaluation": """
for x in xs:
    loss = net(x).mean()
    loss.backward()
    opt.step()
    opt.zero_grad()
with torch.no_grad():
    for x in xs:
        loss = net(x).mean()
""",
    "no step": """
for x in xs:
    loss = net(x).mean()
loss.backward()
""",
    "the rounds' parts": """
parts = []
for x in xs:
    part = net(x)
    parts.append(part)
loss = torch.cat(parts).mean()
"""
    + END,
}


@pytest.mark.parametrize("cell", RIGHT.values(), ids=RIGHT)
def test_what_is_meant_so(cell: str) -> None:
    assert signals((HEAD, cell)) == []
    assert signals((HEAD, cell), sure=False) == []


def test_one_computation_done_again_is_one_line() -> None:
    cells = (HEAD, "for _ in range(3):\n    loss = net(xs[0]).mean()\n" + END)
    assert signals(cells) == []
    assert [s.name for s in signals(cells, sure=False)] == ["last-round-only"]
