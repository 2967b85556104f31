"""Parameters whose gradient stops because their values went past the graph."""

from __future__ import annotations

import pytest
from silent_programs import HEAD
from watching import signals

NET = (
    HEAD
    + """\
class Adapted(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, 3), requires_grad=False)
        self.a, self.b = nn.Parameter(torch.ones(3, 1)), nn.Parameter(torch.ones(1, 3))
        self.merged = False
    def merge(self):
        if not self.merged:
            self.weight.data += self.a @ self.b
        self.merged = True
    def unmerge(self):
        self.weight.data -= self.a @ self.b
        self.merged = False
    def forward(self, x):
        return x @ (self.weight if self.merged else self.weight + self.a @ self.b)
net, head = Adapted(), nn.Linear(3, 1)
opt = torch.optim.SGD([net.a, net.b, *head.parameters()], lr=0.1)
x = torch.ones(2, 3)
def train():
    opt.zero_grad()
    head(net(x)).square().sum().backward()
    opt.step()
def look():
    net.merge()
    with torch.no_grad():
        return head(net(x)).sum()
"""
)
UNDER_NO_GRAD = NET.replace(
    "self.weight.data += self.a @ self.b",
    "with torch.no_grad():\n                self.weight.add_(self.a @ self.b)",
)


@pytest.mark.parametrize(
    "cells",
    [
        (NET, "for _ in range(3):\n    train()\n    look()"),
        (UNDER_NO_GRAD, "for _ in range(3):\n    train()\n    look()"),
        (NET, "train()\nlook()", "train()\ntrain()"),
        (NET.replace("zero_grad()", "zero_grad(set_to_none=False)"), "train()\nlook()\ntrain()"),
    ],
)
def test_merged_and_left_so(cells: tuple[str, ...]) -> None:
    (found,) = signals(cells)
    assert (found.name, found.evidence["count"]) == ("gradient-stopped", 2)
    (cut,) = found.moments["cut"]
    assert "self.a @ self.b" in cut.place.source
    assert "look()" in cut.path[0].source and cut.path[1].source == "net.merge()"
    assert found.moments["step"][0].place.source == "opt.step()"


def test_it_is_told_again_as_long_as_it_is_so() -> None:
    cells = (NET, "train()\nlook()", "train()", "x * 2", "train()", "net.unmerge()\ntrain()")
    assert [s.moments["step"][0].chain[0].cell for s in signals(cells)] == [3, 5]


IN_TURN = """\
heads = nn.ModuleList([nn.Linear(3, 1), nn.Linear(3, 1)])
both = torch.optim.SGD(heads.parameters(), lr=0.1)
for i in range(6):
    both.zero_grad()
    heads[i // 3](x).square().sum().backward()
    both.step()
    with torch.no_grad():
        heads[1].weight.copy_((heads[0].weight + heads[1].weight) / 2)
"""
SCHEDULED = """\
for i in range(4):
    if i == 2:
        net.a.requires_grad_(False)
        net.b.requires_grad_(False)
    train()
"""
LATER = """\
for i in range(6):
    opt.zero_grad()
    y = head(x) if i > 1 else head(net(x))
    (y if i < 4 else head(net(x))).square().sum().backward()
    opt.step()
    if i == 3:
        look()
"""
PROBED = """\
def run():
    for i in range(6):
        h = net(x)
        if i > 2:
            h = h.detach()
        opt.zero_grad()
        head(h).square().sum().backward()
        opt.step()
        with torch.no_grad():
            head(net(x))
run()
"""
DISTILLED = """\
net.merge()
other = nn.Linear(3, 1)
late = torch.optim.SGD([net.a, net.b, *other.parameters()], lr=0.1)
for i in range(3):
    late.zero_grad()
    other(net(x)).sum().backward()
    late.step()
"""


@pytest.mark.parametrize(
    "cells",
    [
        (NET, "for _ in range(3):\n    train()\n    look()\n    net.unmerge()"),
        (NET, "train()\nlook()\nnet.unmerge()", "train()"),
        (NET, IN_TURN),
        (NET, SCHEDULED),
        (NET, LATER),
        (NET, PROBED),
        (NET, PROBED.replace("h = h.detach()", "h = torch.tensor(h.tolist())")),
        (NET, "train()\nlook()"),
        (NET, "for _ in range(2):\n    train()\nlook()", DISTILLED),
    ],
)
def test_what_is_meant_is_quiet(cells: tuple[str, ...]) -> None:
    found = signals(cells)
    assert [s for s in found if s.name == "gradient-stopped"] == []


MEMORY = """
enc, head = nn.Linear(3, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*enc.parameters(), *head.parameters()], lr=0.1)
xs, cache = torch.randn(3, 2, 3), {}
"""
ROUNDS = """
for epoch in range(3):
    for k in range(3):
        loss = head(features(k)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


@pytest.mark.parametrize(
    ("features", "line"),
    [
        (
            "    if k not in cache:\n        f = enc(xs[k])\n        cache[k] = f.detach()\n"
            "        return f\n    return cache[k]",
            "cache[k] = f.detach()",
        ),
        (
            "    if k in cache:\n        return cache[k]\n    f = enc(xs[k])\n"
            "    cache[k] = f.detach().clone()\n    return f",
            "cache[k] = f.detach().clone()",
        ),
        (
            "    f = cache.get(k)\n    if f is None:\n        f = enc(xs[k])\n"
            "        cache[k] = f.detach()\n    return f",
            "cache[k] = f.detach()",
        ),
    ],
)
def test_a_value_that_is_computed_once_and_kept_without_its_graph(features: str, line: str) -> None:
    (found,) = signals((HEAD + MEMORY, f"def features(k):\n{features}" + ROUNDS))
    assert found.name == "gradient-stopped"
    assert [m.place.source for m in found.moments["cut"]] == [line]


@pytest.mark.parametrize(
    "features",
    [
        "    return enc(xs[k])",
        "    if k not in cache:\n        cache[k] = xs[k].square()\n    return enc(cache[k])",
        # A part that is trained at first, and frozen by the program from then on.
        "    if epoch == 0:\n        return enc(xs[k])\n    if k not in cache:\n"
        "        cache[k] = enc(xs[k]).detach()\n    return cache[k]",
    ],
)
def test_what_is_kept_on_purpose(features: str) -> None:
    assert signals((HEAD + MEMORY, f"def features(k):\n{features}" + ROUNDS)) == []
