"""Writes through `.data` to values in the graph: which falsify a gradient that somebody reads."""

from __future__ import annotations

import pytest
from silent_programs import HEAD
from watching import signals

START = HEAD + "w, x = torch.randn(3, requires_grad=True), torch.randn(3)\n"
END = "\n(h * x).sum().backward()"

RIGHT = {
    "noise by a method": "h.data.add_(0.1 * torch.randn_like(h.data))",
    "noise of this shape": "h.data += torch.randn(h.shape)",
    "noise of this size": "h.data = h.data + torch.randn(h.size())",
    "a step along its gradient": "h.retain_grad()\n(h ** 2).sum().backward(retain_graph=True)\n"
    "h.data.add_(0.1 * h.grad.sign())",
    "the same values": "h.data = h.detach().clone().contiguous()",
    "another result of the same operation": "h, mean = torch.std_mean(w * 2)\nmean.data.mul_(2)",
    "values put back": "kept = h.data.clone()\nh.data.mul_(1.1)\nh.data.copy_(kept)",
    "a gradient with respect to the value itself": "h.data.mul_(2)\n"
    "torch.autograd.grad((h ** 2).sum(), h)\nh = w * 3",
    "backward to the value itself": "h.retain_grad()\nh.data.mul_(2)\n"
    "(h ** 2).sum().backward(inputs=[h])\nh = w * 3",
    "an adversarial input, moved step by step": """\
net = nn.Linear(3, 1)
def attack(x):
    moved = x.clone().requires_grad_(True)
    for _ in range(3):
        g, = torch.autograd.grad(net(moved).pow(2).sum(), moved)
        moved = moved + 0.1 * g.sign()
        moved.data.clamp_(-1, 1)
    return moved
net(attack(x)).sum().backward()""",
    "a use before the write, by a Function": """\
class Ones(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.new_ones(3)
    @staticmethod
    def backward(ctx, g):
        return g
y = Ones.apply(h)
h.data.mul_(2)
y.sum().backward()
h = w * 2""",
}


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_a_right_gradient_is_not_spoken_of(name: str) -> None:
    cells = (START + "h = w * 2\n" + RIGHT[name] + END,)
    assert signals(cells) == []
    assert signals(cells, sure=False) == []


MEANT = {
    "a comparison": "h.data = (h.data > 0).float()",
    "signs by where": "h.data = torch.where(h.data > 0, 1.0, -1.0)",
    "signs by an index": "h.data[h.data > 0] = 1\nh.data[h.data <= 0] = -1",
    "small values cleared": "h.data[h.data.abs() < 0.5] = 0",
    "a division that rounds": "h.data = h.data // 0.1 * 0.1",
    "the sign as a factor": "h.data *= torch.sign(h.data)",
    "a mask as a factor": "h.data *= (h.data > 0)",
    "a chain that rounds": "h.data.mul_(127).round_().div_(127)",
    "statements that round": "h.data.mul_(127)\nh.data.round_()\nh.data.div_(127)",
}


@pytest.mark.parametrize("name", sorted(MEANT))
def test_a_gradient_that_may_be_meant_to_pass_is_no_alarm(name: str) -> None:
    cells = (START + "h = w * 2\n" + MEANT[name] + END,)
    assert signals(cells) == []
    assert signals(cells, sure=False)


WRONG = {
    "scaled": "h.data.mul_(0.5)",
    "normalized": "h.data.div_(h.data.norm())",
    "a chain": "h.data.mul_(2).add_(1)",
    "a chain told once": "h.data.mul_(2).clamp_(min=0)",
    "masked": "h.data.mul_(torch.tensor([1.0, 0.0, 1.0]))",
    "clamped by an index": "h.data[h.data < 0] = 0",
    "a factor of one's own": "def factor():\n    return torch.rand(3)\nh.data *= factor()",
    "some left out": "h.data *= torch.rand_like(h) > 0.5",
    "a view": "h = nn.Linear(3, 3)(w)\nh.data.mul_(2)",
    "a leaf of a function": "def run():\n    v = torch.ones(3, requires_grad=True)\n    h = v * 2\n"
    "    h.data.mul_(2)\n    (h * x).sum().backward()\n    return v.grad\nrun()\nh = w * 2",
    "asked for by name": "h.data.mul_(2)\ntorch.autograd.grad((h ** 2).sum(), w)\nh = w * 3",
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_a_wrong_gradient_is_found(name: str) -> None:
    (found,) = signals((START + "h = w * 2\n" + WRONG[name] + END,))
    assert found.evidence["way"] == "unrecorded"
