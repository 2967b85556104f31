"""Rewrites that agree with the reference and still miss a derivative: the loss itself tells."""

import pytest
import torch

from autograd_explain.model import Outcome
from autograd_explain.verification.compare import relative_error

MODEL = """
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(4, 5)
        self.lin = nn.Linear(5, 3)
    def forward(self, x):
        act = self.inp(x)
        out = self.lin(act)
        {write}
        return out.pow(2).sum() + act.pow(2).sum()
net = Net()
x = torch.randn(6, 4)
loss = net(x)
loss.backward()
"""
SAVER = ("self.lin(act)", "self.lin(act.clone())")
#: Ways to write a third of the value behind autograd's back.
HIDDEN = {
    "numpy": "act.detach().numpy()[:] /= 3.0",
    "another memory": "act.data = act.data / 3.0",
    "a value computed outside": "act.data.copy_(act.data / 3.0)",
    "a part, by numpy": "act.detach()[:2].numpy()[:] /= 3.0",
    "out": "torch.div(act.detach(), 3.0, out=act.data)",
    "a leaf of its own": "torch.no_grad()(act.detach().requires_grad_().div_)(3.0)",
    "a leaf's data": "act.detach().requires_grad_().data.div_(3.0)",
    "a leaf that shares no version": "act.data.requires_grad_().data.div_(3.0)",
    "leaves in a list": "torch._foreach_div_([act.detach().requires_grad_().data], 3.0)",
}
#: Writes whose values do not depend on what they overwrite: nothing is missed.
CONSTANT = {
    "numpy": "act.detach().numpy()[:, 0] += 0.25",
    "another memory": "act.data = act.data + 0.25",
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", HIDDEN)
def test_a_hidden_write_that_carries_a_derivative_is_not_verified(play, name):
    rewrite = play(MODEL.format(write=HIDDEN[name])).try_out(SAVER)
    assert rewrite.outcome is Outcome.RUNS
    assert rewrite.reason.values["why"] in ("finite_differences", "ambiguous")


@pytest.mark.parametrize("name", CONSTANT)
def test_a_hidden_write_that_carries_none_is(play, name):
    assert play(MODEL.format(write=CONSTANT[name])).try_out(SAVER).outcome is Outcome.VERIFIED


def test_a_session_whose_calls_are_hidden_hides_none_of_the_replays(play):
    """Reports are made where torch's function modes are switched off, and replays fork there."""
    played = play(MODEL.format(write="act.data.div_(3.0)"), checkpoint=False)
    recorded = ("act.data.div_(3.0)", "act = act.div(3.0)")
    with torch._C.DisableTorchFunction():
        assert played.try_out(SAVER).outcome is Outcome.RUNS
        assert played.try_out(recorded).outcome is Outcome.VERIFIED


#: What a finite difference contradicts on purpose, and has no say in.
INTENDED = {
    "a detached target": ("", "loss = net(x) + (net(x) - net(x).detach() ** 2) ** 2"),
    "straight through": ("out = out + (out.round() - out).detach()", "loss = net(x)"),
    "dropout": ("out = torch.dropout(out, 0.5, True)", "loss = net(x)"),
    "a reversed gradient": ("out.register_hook(lambda g: -g)", "loss = net(x)"),
    "two backwards": ("", "loss = net(x)\nloss.backward()\nloss = net(x) * 2"),
    "a manual update": (
        "",
        "for _ in range(2):\n    net.zero_grad()\n    loss = net(x)\n    loss.backward()\n"
        "    for p in net.parameters():\n        p.data -= 0.01 * p.grad\nloss = net(x)",
    ),
}


@pytest.mark.parametrize("name", INTENDED)
def test_a_gradient_that_stops_on_purpose_stays_verified(play, name):
    line, loss = INTENDED[name]
    text = MODEL.format(write=f"act.data.div_(3.0)\n        {line}").replace("loss = net(x)", loss)
    recorded = ("act.data.div_(3.0)", "act = act.div(3.0)")
    assert play(text).try_out(recorded).outcome is Outcome.VERIFIED


#: The same with a write that cannot be followed: what is left to say is that it runs.
@pytest.mark.parametrize("name", ["a detached target", "straight through"])
def test_what_finite_differences_contradict_does_not_differ(play, name):
    line, loss = INTENDED[name]
    text = MODEL.format(write=f"act.data = act.data + 0.25\n        {line}")
    rewrite = play(text.replace("loss = net(x)", loss)).try_out(SAVER)
    assert rewrite.outcome is Outcome.RUNS
    assert rewrite.reason.values["why"] == "finite_differences"


#: Where a constant is written past autograd, and finite differences confirm the gradients.
CONFIRMED = {
    "two backwards": INTENDED["two backwards"],
    "a manual update": INTENDED["a manual update"],
    "dropout": INTENDED["dropout"],
    "numbers of double precision": ("", "net.double()\nx = x.double()\nloss = net(x)"),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", CONFIRMED)
def test_each_leaf_is_moved_for_its_last_backward(play, name):
    line, loss = CONFIRMED[name]
    text = MODEL.format(write=f"act.data = act.data + 0.25\n        {line}")
    assert play(text.replace("loss = net(x)", loss)).try_out(SAVER).outcome is Outcome.VERIFIED
    wrong = text.replace("act.data + 0.25", "act.data * 1.1").replace("loss = net(x)", loss)
    assert play(wrong).try_out(SAVER).outcome is Outcome.RUNS


OPTIMIZED = """
import torch
torch.manual_seed(0)
start = torch.randn(4, requires_grad=True).to(torch.bfloat16)
opt = torch.optim.SGD([start], lr=0.1{options})
for _ in range(2):
    opt.zero_grad()
    loss = start.view(2, 2).float().pow(2).sum()
    loss.backward()
    opt.step()
    {after}
"""


#: bfloat16 is too coarse for finite differences: they would confirm nothing.
@pytest.mark.parametrize("options", ["", ", foreach=True"])
@pytest.mark.parametrize("after", ["", "start.data.clamp_(-1, 1)"])
def test_steps_of_a_leaf_on_a_dead_value_s_memory_are_no_hidden_writes(play, options, after):
    leaf = (".to(torch.bfloat16)", ".to(torch.bfloat16).detach().requires_grad_()")
    played = play(OPTIMIZED.format(options=options, after=after))
    assert played.try_out(leaf).outcome is Outcome.VERIFIED


NUMPY = """
import numpy as np
import torch
torch.manual_seed(0)
w = torch.randn(4, requires_grad=True)
y = w * 2
seen = y.numpy()
loss = y.pow(2).sum(){used}
loss.backward()
"""


def test_numbers_that_come_back_from_numpy_into_the_loss_carry_a_gradient(play):
    detached = ("y.numpy()", "y.detach().numpy()")
    rewrite = play(NUMPY.format(used="")).try_out(detached)
    assert rewrite.outcome is Outcome.VERIFIED
    back = " + (y * torch.from_numpy(np.exp(-seen))).sum()"
    rewrite = play(NUMPY.format(used=back)).try_out(detached)
    assert rewrite.outcome is Outcome.RUNS
    assert rewrite.reason.values["why"] == "finite_differences"


def test_a_gradient_that_is_rounding_alone_does_not_differ():
    """A bias before a batch norm: whatever order its terms are added in, they make zero."""
    one, other = torch.tensor([1e-9]), torch.tensor([-2e-9])
    assert relative_error(one, other) > 1
    assert relative_error(one, other, scale=0.3) < 1
    assert relative_error(one * 1000, other * 1000, scale=0.3) > 1
