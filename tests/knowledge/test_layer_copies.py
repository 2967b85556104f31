"""Modules whose parameters are written after they were called and before one backward: each call
that saved them computes with copies."""

from __future__ import annotations

import pytest
from knowledge.played import edited, play
from knowledge.test_cases import run

from autograd_explain.render.topic_content import cells_of

START = """# %%
import copy
import torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
# %%
"""
NORMALISED = """class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2, bias=False)
    @torch.no_grad()
    def renorm(self):
        w = self.fc.weight
        w.copy_(nn.functional.normalize(w, dim=1))
    def forward(self, h):
        self.renorm()
        return self.fc(input=h.tanh())
body, head = nn.Linear(4, 3), Head()
one, other = (head(body(torch.randn(5, 4))) for _ in range(2))
loss = (one * other).sum()
loss.backward()
"""
RESTORED = """net = nn.Sequential(nn.Linear(1, 4), nn.ReLU(), nn.Linear(4, 1))
start = copy.deepcopy(net.state_dict())
losses = []
for task in range(2):
    x = torch.rand(6, 1)
    grads = torch.autograd.grad(net(x).mean(), net.parameters())
    with torch.no_grad():
        for p, g in zip(net.parameters(), grads):
            p -= 0.1 * g
    losses.append(net(x).pow(2).mean())
    net.load_state_dict(start)
torch.stack(losses).mean().backward()
"""
RECURRENT = """net = nn.LSTM(3, 2)
x = torch.randn(4, 1, 3, requires_grad=True)
losses = []
for task in range(2):
    losses.append(net(x)[0].sum())
    with torch.no_grad():
        for p in net.parameters():
            p.mul_(0.9)
torch.stack(losses).mean().backward()
"""
COPIES = "{name: p.clone() for name, p in %s.named_parameters()}"
PROGRAMS = {
    "a layer normalised at each call": (
        NORMALISED,
        f'functional_call(self.fc, {COPIES % "self.fc"}, (), {{"input": h.tanh()}})',
    ),
    "weights put back for the next task": (RESTORED, f"net, {COPIES % 'net'}, (x,)).pow(2)"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_call_computes_with_copies(name: str) -> None:
    text, wanted = PROGRAMS[name]
    cells = cells_of(START + text)
    found = play(cells, watched=True).diagnosis
    assert found is not None
    assert found.finding.cause == "saved_value_overwritten"
    assert found.rewrites[0].fix == "clone_operand"
    new = edited(cells, found.rewrites[0])
    assert wanted in new[-1]
    run(new)


def test_a_recurrent_layer_would_go_on_with_its_own() -> None:
    found = play(cells_of(START + RECURRENT), watched=True).diagnosis
    assert found is not None
    assert all("functional_call" not in e.diff for r in found.rewrites for e in r.edits)
