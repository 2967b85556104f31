"""Which cells need no copy of the session: they only define."""

from __future__ import annotations

import pytest

from autograd_explain.intercept.defining_cells import only_defines

DEFINING = (
    "a = 1",
    "lr, steps = -1e-3, [1, 2]\nnames = {'a': None}\n'text'",
    "import torch, os\nfrom torch import nn",
    "def f(x: torch.Tensor, n: int | None = 3) -> list[int]:\n    return x.sum().backward()",
    "class Net(torch.nn.Module):\n    '''doc'''\n    width = 3\n    def forward(self, x):\n"
    "        return x + 1",
)
COMPUTING = (
    "loss.backward()",
    "a = b + 1",
    "a = -b",
    "from torch import never_there",
    "from torch.nn import *",
    "x",  # shown: its repr runs
    "y = x.grad",
    "x[0] = 1",
    "m.a = 1",
    "import never_loaded_module",
    "from . import mine",
    "@torch.no_grad()\ndef f(x): ...",
    "def f(x=torch.ones(2)): ...",
    "class A:\n    w = torch.ones(2)",
    "class A(metaclass=M): ...",
    "for i in xs:\n    pass",
    "%time x = 1",
    "with f:\n    pass",
    "f'{x}'",
    "a: int = 1",
)


@pytest.mark.parametrize("text", DEFINING)
def test_defines(text: str) -> None:
    assert only_defines(text)


@pytest.mark.parametrize("text", COMPUTING)
def test_computes(text: str) -> None:
    assert not only_defines(text)
