"""Inputs of a derivative whose numbers alone a model computes with."""

from __future__ import annotations

import pytest
from watching import signals

HEAD = """\
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters
torch.manual_seed(0)
net, aim = nn.Linear(2, 1), nn.Linear(2, 1)
x, start = torch.randn(4, 2), torch.ones(3)
def fill(q):
    net.weight.data.copy_(q[:2].view(1, 2))
    with torch.no_grad():
        net.bias.copy_(q[2:])
"""
ENERGY = "def energy(q):\n    {0}\n    return net(x).square().sum() + q.square().sum()\n"
VECTOR = "vector_to_parameters(q, net.parameters())"
GRAD = "q = start.clone().requires_grad_()\ntorch.autograd.grad(energy(q), q)"
LOST = {
    "a Hessian": (VECTOR, "torch.autograd.functional.hessian(energy, start)"),
    "a Hessian where it was called before": (
        VECTOR,
        "energy(start)\ntorch.autograd.functional.hessian(energy, start)",
    ),
    "a gradient": (VECTOR, GRAD),
    "by hand": ("fill(q)", GRAD),
}
MEANT = {
    "by the parameters": ENERGY.format(VECTOR)
    + "torch.autograd.grad(energy(start.requires_grad_()), [*net.parameters()])",
    "a target": "vector_to_parameters(parameters_to_vector(net.parameters()), aim.parameters())\n"
    "torch.autograd.grad((net(x) - aim(x)).square().sum(), [*net.parameters()])",
    "an anchor": "q = start.clone().requires_grad_()\nold = start.clone().requires_grad_()\n"
    "old.data.copy_(q)\ntorch.autograd.grad((q - old).square().sum() + q.sum(), q)",
    "a solution held fixed": "q = torch.tensor(0.5, requires_grad=True)\n"
    "net.bias.data = (x.sum() / (1 + q)).data[None]\n"
    "torch.autograd.grad(net(x).square().sum() + q * net.bias.square().sum(), q)",
    "used before it was written": "q = start.clone().requires_grad_()\n"
    "loss = net(x).sum() + q.square().sum()\nvector_to_parameters(q, net.parameters())\n"
    "torch.autograd.grad(loss, q)",
}


@pytest.mark.parametrize("name", LOST)
def test_the_numbers_of_an_input_in_parameters_are_found(name: str) -> None:
    write, derivative = LOST[name]
    found = signals((HEAD, ENERGY.format(write), derivative))
    assert {(s.name, s.evidence["way"]) for s in found} == {("graph-cut", "input")}
    assert {s.moments["used"][0].place.source.strip() for s in found} == {
        "return net(x).square().sum() + q.square().sum()"
    }


@pytest.mark.parametrize("name", MEANT)
def test_what_may_be_meant_raises_no_alarm(name: str) -> None:
    assert signals((HEAD, MEANT[name])) == []
