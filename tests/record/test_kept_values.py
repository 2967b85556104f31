"""Values under a second name that were written in place: who reads them says what was meant."""

from __future__ import annotations

import pytest
from record.watching import signals

HEAD = (
    "import torch\nimport torch.nn.functional as F\nfrom torch import nn\ntorch.manual_seed(0)\n"
    "w, v = torch.ones(3, requires_grad=True), torch.randn(3)\n"
)
NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 1)
        self.act, self.seen = nn.ReLU(inplace=True), {}
        self.body = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 4))
    def forward(self, x):
        feats = []
        x = self.first(x)
BODY
        return self.last(x), feats
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
TRAIN = (
    "for _ in range(2):\n    out, feats = net(torch.randn(5, 3))\n"
    "    loss = out.sum() + sum(f.mean() for f in feats)\n"
    "    opt.zero_grad()\n    loss.backward()\n    opt.step()"
)


def trained(body: str, train: str = TRAIN) -> tuple[str, ...]:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return HEAD + NET.replace("BODY", lines), train


LIST = "feats.append(x)\nx = F.relu(x, inplace=True)\nx = self.second(x)"
SKIP = "skip = x\nx = self.act(x)\nx = self.second(x) + skip"
ROLLED = "def roll(h):\n    states = [h]\n    for _ in range(3):\n        h += v * w\n        "

WRONG = [
    (trained(LIST), "feats"),
    (
        trained(
            "for k, layer in enumerate((self.second, self.act)):\n    x = layer(x)\n"
            "    if k != 1:\n        feats.append(x)"
        ),
        "feats",
    ),
    (
        (
            HEAD
            + "layers = nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True), nn.Linear(3, 3))\n"
            "def features(x):\n    found = []\n    for k, layer in enumerate(layers):\n"
            "        x = layer(x)\n        if k != 1:\n            found.append(x)\n"
            "    return found",
            "sum(F.mse_loss(a, b) for a, b in zip(features(w), features(v))).backward()",
        ),
        "found",
    ),
    (trained("x = self.second(x[None])[0]\n" + SKIP), "skip"),
    (trained(SKIP), "skip"),
    (trained(SKIP.replace("x = self.act(x)", "x.mul_(0.5)")), "skip"),
    (trained("self.seen['h'] = x\nx.mul_(0.5)\nfeats = [self.seen['h']]"), "self.seen"),
    (trained("x = x + self.body(x)"), "x"),
    (trained("h = x\nh += 1\nx = torch.sin(h) - x"), "x"),
    (
        (
            HEAD + ROLLED + "states.append(h)\n    return states\n"
            "sum((s - 1).sum() for s in roll(w * 1)).backward()",
        ),
        "states",
    ),
    (
        (
            HEAD + "buffer, outs = torch.zeros(3), []\nfor t in range(3):\n"
            "    buffer[:] = w * t\n    outs.append(buffer)\ntorch.stack(outs).sum().backward()",
        ),
        "outs",
    ),
]


@pytest.mark.parametrize(("cells", "kept"), WRONG, ids=lambda v: v if type(v) is str else "")
def test_what_is_read_by_both_names_or_held_twice(cells: tuple[str, ...], kept: str) -> None:
    (found,) = signals(cells)
    assert (found.name, found.evidence["kept"]) == ("kept-output-overwritten", kept)
    assert found.moments["changed"] and found.moments["used"] and found.evidence["copied"]


def test_all_writes_of_one_list_are_one_finding() -> None:
    (found,) = signals(trained(LIST + "\n" + LIST))
    assert [m.place.line for m in found.moments["changed"]] == [17, 20]
    assert [place.line for place, _ in found.evidence["copied"]] == [16, 19]


RIGHT = {
    "a list that no loss reads": trained(LIST, TRAIN.replace("f.mean()", "f.mean().item()")),
    "copies": trained(LIST.replace("append(x)", "append(x.clone())")),
    "a sum into what was computed": trained("skip = x\nx = self.second(x)\nx += skip"),
    "what a list holds is scaled there": trained(
        "feats += [self.second(x), x + 1]\nfor f in feats:\n    f.mul_(0.5)"
    ),
    "nested calls": trained("x = torch.sin(self.act(self.second(self.act(x)) + 1))"),
    "the same twice": trained("x = x.clamp(min=0)\nskip = x\nx.clamp_(min=0)\nx = x.mean() + skip"),
    "layers' outputs of which those behind the activations are read": trained(
        "every = []\nfor layer in (self.second, self.act, self.last):\n    y = layer(x)\n"
        "    every.append(y)\n    x = y if y.size(1) == 4 else x\nfeats = [every[1]]"
    ),
    "one list for several blocks": trained(
        "x = torch.stack([block(x) for block in (self.body, self.second)]).sum(0)"
    ),
    "what a list holds once and is read in a loop": (
        HEAD + "feats, h = [], w * 1\nfeats.append(h)\nh.mul_(2)\nloss = 0\n"
        "for k in range(3):\n    loss = loss + (feats[0] * k).sum()\nloss.backward()",
    ),
    "a part of an output": trained("x = self.second(x)\nparts = [x]\nx[:, 0] = 0\nx = x * 2"),
    "a running sum": (
        HEAD + "log, total = {}, torch.zeros(())\nlog['total'] = total\nfor t in range(4):\n"
        "    total += (w * t).sum()\n(log['total'] / 4).backward()",
    ),
    "losses by name": (
        HEAD + "a, b = (w * 2).sum(), (w * 3).sum()\nlosses = {'a': a, 'b': b}\nloss = a\n"
        "loss += b\nlosses['total'] = loss\nloss.backward()\nlosses['a'].item()",
    ),
    "a state of an object": (
        HEAD + "class State: pass\nstate = State()\nh = w * 1\nstate.h = h\n"
        "for t in range(4):\n    h += w\n(state.h * 2).sum().backward()",
    ),
    "rows of a buffer": (
        HEAD + "rows = torch.zeros(4, 3)\nstore = [rows]\nfor t in range(4):\n"
        "    rows[t] = w * t\ntorch.cat(store).sum().backward()",
    ),
    "copies of a state": (
        HEAD + ROLLED + "states.append(h.clone())\n    return torch.stack(states[1:]), h\n"
        "rolled, last = roll(w * 1)\n(rolled.sum() + last.sum()).backward()",
    ),
}


@pytest.mark.parametrize("cells", RIGHT.values(), ids=RIGHT)
def test_what_is_meant_so(cells: tuple[str, ...]) -> None:
    assert signals(cells) == []
    assert signals(cells, sure=False) == []
