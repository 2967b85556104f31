"""Gradients that code inside a backward writes: named where others have them as well."""

from __future__ import annotations

import pytest
from knowledge.played import added, edited, play
from notebook import cells_of

from autograd_explain.model import Outcome, What

START = """# %%
import torch
from torch import nn
torch.manual_seed(0)
a, b = torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True)
lin = nn.Linear(4, 4)
"""
FUNCTION = """class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.relu()
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad_input = grad_output
        grad_input[x < 0] = 0
        return grad_input
# %%
loss = ((a * 2 + Gate.apply(b * 3)) ** 2).sum()
loss.backward()
"""
#: The notebook, the line of the write, and what the first rewrite brings in.
FAULTS = {
    "lambda": (
        "# %%\nh, k = a * 2, b * 3\nk.register_hook(lambda g: g.clamp_(-1e-3, 1e-3))\n"
        "loss = ((h + k) ** 2).sum()\nloss.backward()",
        "k.register_hook(lambda g: g.clamp_(-1e-3, 1e-3))",
        ["k.register_hook(lambda g: g.clamp(-1e-3, 1e-3))"],
    ),
    "hook of a leaf": (
        "def scale(g):\n    g.data.mul_(0.1)\nb.register_hook(scale)\n"
        "# %%\nloss = ((b + a) ** 2).sum()\nloss.backward()",
        "g.data.mul_(0.1)",
        ["g = g.clone()", "return g"],
    ),
    "alias in a Function": (
        FUNCTION, "grad_input[x < 0] = 0", ["grad_input = grad_output.clone()"]
    ),
}  # fmt: skip


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", FAULTS)
def test_a_written_gradient_is_named(name: str) -> None:
    text, write, lines = FAULTS[name]
    cells = cells_of(START + text)
    found = play(cells, watched=True, verify=True)
    assert found.diagnosis is not None and found.trouble == "", found.output
    finding, (first, *_) = found.diagnosis.finding, found.diagnosis.rewrites
    place = finding.place(What.CHANGED)
    assert finding.cause == "gradient_overwritten" and place is not None
    assert place.source == write and finding.tensors[0].names[0] == "a"
    assert first.outcome is Outcome.VERIFIED, found.output
    assert added(cells, edited(cells, first)) == lines


def test_a_hook_that_only_reads_gives_the_gradient_back_as_it_was() -> None:
    text = (
        "shares = []\ndef log(g):\n    share = g.abs_().sum()\n    shares.append(share.item())\n"
        "# %%\nh, k = a * 2, b * 3\nk.register_hook(log)\nloss = ((h + k) ** 2).sum()\n"
        "loss.backward()"
    )
    cells = cells_of(START + text)
    found = play(cells, watched=True, verify=True)
    assert found.diagnosis is not None, found.output
    (first,) = found.diagnosis.rewrites
    assert (first.fix, first.outcome) == ("only_read", Outcome.DIFFERS)
    assert added(cells, edited(cells, first)) == ["share = g.abs().sum()"]


def test_a_gradient_that_nobody_else_has_may_be_written() -> None:
    text = (
        "# %%\nh, k = a * 2, b * 3\nk.register_hook(lambda g: g.mul_(0.1))\n"
        "loss = (h * k).sum() + lin(h).sum()\nloss.backward()\n"
        "# %%\nk = a * 2 + b\nk.register_hook(lambda g: g.mul(0.1))\n(k + a).sum().backward()"
    )
    found = play(cells_of(START + text), watched=True, verify=True)
    assert found.diagnosis is None and found.trouble == "", found.output
