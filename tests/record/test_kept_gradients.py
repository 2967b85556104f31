"""Gradients that a program keeps as its state: the tensor itself, or a copy."""

from __future__ import annotations

import pytest
from watching import signals

HEAD = """\
import torch
from torch import nn
torch.manual_seed(0)
net, x = nn.Linear(3, 1), torch.ones(2, 3)
state = {}
class Momentum:
    def __init__(self):
        self.kept = None
    @torch.no_grad()
    def step(self, grads):
        if self.kept is None:
            self.kept = [p.grad for p in net.parameters()]
        for v, g in zip(self.kept, grads):
            v.lerp_(g, 0.1)
moments = Momentum()
"""
LOOP = "for i in range(4):\n    net.zero_grad(set_to_none=False)\n    net(x).sum().backward()\n    "
BY_NAME = LOOP + (
    "for n, p in net.named_parameters():\n        if n not in state:\n"
    "            state[n] = p.grad\n        else:\n            state[n].mul_(0.9).add_(p.grad)"
)
ITSELF = {
    "state": (BY_NAME, "p.grad"),
    "self.kept": (LOOP + "moments.step([p.grad for p in net.parameters()])", "p.grad"),
}
MEANT = {
    "a copy": BY_NAME.replace("= p.grad", "= p.grad.clone()"),
    "a new gradient each time": BY_NAME.replace("set_to_none=False", ""),
    "the first value of an average": BY_NAME.replace("set_to_none=False", "").replace(
        "        else:\n            state[n].mul_(0.9).add_(", "        state[n].lerp_("
    ).replace("lerp_(p.grad", "lerp_(p.grad, 0.1"),
    "doubled": LOOP + "for p in net.parameters():\n        g = p.grad\n        g.add_(g)",
    "doubled by two names": LOOP + "g = net.weight.grad\n    g.add_(net.weight.grad)",
    "a momentum in it": BY_NAME.replace("net.zero_grad(set_to_none=False)", "pass").replace(
        ".mul_(0.9).add_(p.grad)", ".mul_(0.9)"
    ),
}  # fmt: skip


@pytest.mark.parametrize("kept", ITSELF)
def test_what_is_kept_itself_and_written_by_itself_is_found(kept: str) -> None:
    body, stored = ITSELF[kept]
    (found,) = signals((HEAD, body))
    assert (found.name, found.evidence["way"]) == ("kept-output-overwritten", "gradient")
    assert found.evidence["kept"] == kept
    assert [text for _, text in found.evidence["copied"]] == [stored]


@pytest.mark.parametrize("name", MEANT)
def test_what_may_be_meant_raises_no_alarm(name: str) -> None:
    assert signals((HEAD, MEANT[name])) == []
