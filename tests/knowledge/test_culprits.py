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

INTEGERS_OF_A_HELPER = """# %%
import torch
import numpy as np
def unknown(array):
    return torch.from_numpy(array.copy()).requires_grad_(True)
# %%
peaks = unknown(np.arange(3))
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

CALLED = FUNCTION.replace("    @staticmethod\n", "").replace("quantize(", "Round()(")


NO_FORMULA = """# %%
import torch
from torch.distributions import Gamma
log_shape, rate = torch.zeros((), requires_grad=True), torch.ones(3, requires_grad=True)
# %%
Gamma(log_shape.exp(), rate).cdf(torch.ones(3)).sum().backward()
"""

INDEXED = """# %%
import torch
from torch import nn
table = torch.rand(10, 3)
class Lookup(nn.Module):
    def __init__(self):
        super().__init__()
        self.at = nn.Parameter(torch.rand(4) * 9)
    def forward(self, values):
        rows = self.at.long()
        return values[rows]
lookup = Lookup()
# %%
lookup(table).sum().backward()
"""

DUAL = """# %%
import torch
import torch.autograd.forward_ad as fwAD
points = torch.zeros(2, 2)
def spread(p):
    return torch.cdist(p * 2, points)
# %%
with fwAD.dual_level():
    moved = fwAD.make_dual(points, torch.ones(2, 2))
    spread(moved)
"""

FORWARD_JACOBIAN = """# %%
import torch
from torch.autograd.functional import jacobian
points, scale = torch.zeros(2, 2), torch.ones(())
def spread(p, s):
    return torch.cdist(p * s, points)
# %%
jacobian(lambda s: spread(points, s), scale, vectorize=True, strategy="forward-mode")
"""


@pytest.mark.parametrize(
    ("text", "names", "said"),
    [
        (INTEGERS_IN_A_CLASS, ("self.xs", "xs"), "`self.xs` holds whole numbers (int64)"),
        (INTEGERS_AT_THE_TOP, ("knots",), "`knots` holds whole numbers (int64)"),
        (INTEGERS_OF_A_HELPER, ("peaks", "array"), "An integer tensor cannot require grad"),
        (FLAGS_NESTED, ("mask", "flags"), "`mask` holds whole numbers (bool)"),
        (INDEXED, ("rows", "lookup(table).sum()"), "`self.at.long()` (In[1]:9) gives integers"),
        (DUAL, ("moved",), "`torch.cdist(p * 2, points)` uses `_cdist_forward`"),
        (FORWARD_JACOBIAN, ("scale", "s"), "`torch.cdist(p * s, points)` uses `_cdist_forward`"),
        (NO_FORMULA, ("log_shape",), "`log_shape` was to get a gradient through it"),
        (CALLED, ("Round", "quantize"), "calls an instance of a custom Function"),
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


HOOK = """# %%
import torch
from torch import nn
net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True))
kept = {}
def collect(module, inputs, output):
    flat = output.view(-1)
    kept["norm"] = flat.square().mean()
net[0].register_forward_hook(collect)
# %%
x = torch.rand(2, 3, requires_grad=True)
net(x)
sum(v.sum() for v in kept.values()).backward()
"""


@pytest.mark.parametrize("watched", [False, True])
def test_what_a_view_is_of_is_named_too(watched: bool) -> None:
    found = play(cells_of(HOOK), watched=watched).diagnosis
    assert found is not None and found.finding.cause == "saved_value_overwritten"
    assert found.finding.tensors[0].names[:2] == ("flat", "output")


def test_what_was_computed_of_something_does_not_bear_its_name() -> None:
    """`exp` gives memory of its own: what it read was not overwritten."""
    text = HOOK.replace("output.view(-1)", "output.exp()").replace(
        "    kept", "    kept['one'] = flat.square()\n    flat.add_(1)\n    kept"
    )
    found = play(cells_of(text)).diagnosis
    assert found is not None and found.finding.tensors[0].names[0] == "flat"
    assert "output" not in found.finding.tensors[0].names


def test_what_a_view_without_a_name_looks_into_is_named() -> None:
    cells = (
        "import torch\ncell = torch.nn.GRUCell(3, 4)",
        "for k in ('ih', 'hh'):\n    getattr(cell, f'bias_{k}').chunk(3)[1].fill_(1.0)",
    )
    found = play(cells).diagnosis
    assert found is not None and "cell.bias_ih" in found.finding.tensors[0].names


def test_what_a_saving_call_is_given_beside_the_tensor_does_not_hide_its_name() -> None:
    cells = (
        "import torch\nw = torch.randn(2, 3, requires_grad=True)\n"
        "def normed(x):\n    h = x.exp()\n"
        "    h.sub_(h.mean(-1, keepdim=True)).div_(h.std(-1, keepdim=True))\n    return h.sum()",
        "normed(w).backward()",
    )
    found = play(cells).diagnosis
    assert found is not None and found.finding.tensors[0].names == ("h",)


LAYERS = """# %%
import torch
from torch import nn
torch.manual_seed(0)
{}
# %%
net(torch.ones(2, 3)).sum().backward()
"""


@pytest.mark.parametrize(
    ("made", "names"),
    [
        ("net = nn.Sequential(nn.Linear(3, 3), nn.Sigmoid(), {}, nn.Tanh())", ("net[1]",)),
        (
            "block = nn.Sequential(nn.Linear(3, 3), nn.Sigmoid(), {})\n"
            "net = nn.Sequential(nn.Linear(3, 3), nn.Sigmoid(), block)",
            ("block[1]",),
        ),
        ("net = nn.Sequential(nn.Linear(3, 3), nn.Sigmoid(), nn.Sigmoid(), {})", ()),
    ],
)
def test_a_value_inside_a_module_is_named_by_the_layer_that_returned_it(
    made: str, names: tuple[str, ...]
) -> None:
    text = LAYERS.format(made.format("nn.Dropout(0.5, inplace=True)"))
    found = play(cells_of(text)).diagnosis
    assert found is not None and found.finding.cause == "saved_value_overwritten"
    assert found.finding.tensors[0].names == tuple(m for n in names for m in (f"{n}(...)", n))
