"""What the report calls the culprit where the failure left no tensor behind."""

from __future__ import annotations

import pytest
from knowledge.played import play

from autograd_explain.model import Role
from autograd_explain.render.topic_content import cells_of

INTEGERS_IN_A_CLASS = """# %%
import torch
class Spline:
    def __init__(self, xs):
        self.xs = torch.tensor(xs, requires_grad=True)
# %%
curve = Spline([0, 2, 5])
"""

INTEGERS_AT_THE_TOP = """# %%
import torch
# %%
knots = torch.tensor([0, 2, 5], requires_grad=True)
"""

FLAGS_NESTED = """# %%
import torch
flags = [[True, False], [False, False]]
# %%
mask = torch.tensor(data=flags, requires_grad=True)
"""

FUNCTION = """# %%
import torch
class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, levels):
        return torch.round(x * levels) / levels
    @staticmethod
    def backward(ctx, grad):
        return grad
quantize = Round.apply
# %%
quantize(torch.ones(2, requires_grad=True), 4).sum().backward()
"""


NO_FORMULA = """# %%
import torch
from torch.distributions import Gamma
log_shape, rate = torch.zeros((), requires_grad=True), torch.ones(3, requires_grad=True)
# %%
Gamma(log_shape.exp(), rate).cdf(torch.ones(3)).sum().backward()
"""


@pytest.mark.parametrize(
    ("text", "names", "said"),
    [
        (INTEGERS_IN_A_CLASS, ("self.xs", "xs"), "`self.xs` holds whole numbers (int64)"),
        (INTEGERS_AT_THE_TOP, ("knots",), "`knots` holds whole numbers (int64)"),
        (FLAGS_NESTED, ("mask", "flags"), "`mask` holds whole numbers (bool)"),
        (NO_FORMULA, ("log_shape",), "`log_shape` was to get a gradient through it"),
        (FUNCTION, ("Round", "quantize"), "`Round.backward` does not return one gradient"),
    ],
)
def test_names(text: str, names: tuple[str, ...], said: str) -> None:
    found = play(cells_of(text))
    assert found.trouble == ""
    assert found.diagnosis is not None
    culprit = found.diagnosis.finding.tensor(Role.CULPRIT)
    assert culprit is not None and culprit.names == names
    assert said in found.output.replace("\n", " ")
