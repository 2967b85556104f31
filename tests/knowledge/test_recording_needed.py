"""Derivatives where nothing is recorded, and values that must not leave torch."""

from __future__ import annotations

from pathlib import Path

import pytest
from knowledge.played import Played, edited, play
from knowledge.test_cases import run
from notebook import installed

LIBRARY = """import torch
from torch import nn

class Runner:
    def __init__(self, steps=1, inference_mode=True):
        self.switch = torch.inference_mode if inference_mode else torch.no_grad
    def validate(self, model, batch):
        switch = self.switch
        with switch():
            return model.check(batch)

def validate(model, batch, switch=torch.no_grad):
    with switch():
        return model.check(batch)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.act = nn.Conv2d(1, 2, 3), nn.ReLU(inplace=True)
    def forward(self, x):
        return self.act(self.conv(x))
"""
MODEL = """class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 1)
    def force(self, pos):
        pos.requires_grad_()
        energy = self.net(pos).sum()
        return torch.autograd.grad(energy, pos)[0]
    def check(self, pos):
        return self.force(pos)
model = Field()
"""
RECORDED = """        with torch.enable_grad():
            energy = self.net(pos).sum()
            return torch.autograd.grad(energy, pos)[0]"""
TWICE = """class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 1), nn.Tanh())
    def d(self, y, x):
        return torch.autograd.grad(y.sum(), x, create_graph=True)[0]
    def check(self, pos):
        x = pos.clone().requires_grad_(True)
        u = self.net(x)
        du = self.d(u, x)
        return self.d(du, x) + u
model = Field()
"""
ONCE = """from torch.autograd.function import once_differentiable
class Soft(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, power):
        ctx.power = power
        scale = 1 + x.abs()
        ctx.save_for_backward(scale)
        return x / scale
    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        scale, = ctx.saved_tensors
        return grad / scale ** 2, None
x = torch.ones(3, requires_grad=True)
"""
GAUSS = """class Gauss(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_sigma = nn.Parameter(torch.zeros(3))
    def forward(self, x):
        sigma = np.exp(self.log_sigma)
        return (x / sigma).square().mean() + np.log(sigma).sum() + np.log(2 * np.pi)
model = Gauss()
"""
#: The cells, the cause, and what the repaired program holds.
PROGRAMS = {
    "a library evaluates without recording": (
        [MODEL, "model.check(torch.ones(2, 3))", "f = validate(model, torch.ones(2, 3))"],
        "grad_mode_off",
        RECORDED,
    ),
    "a library hands over what does not ask for a gradient": (
        [
            MODEL.replace("        pos.requires_grad_()\n", ""),
            "model.check(torch.ones(2, 3, requires_grad=True))",
            "f = validate(model, torch.ones(2, 3, requires_grad=True))",
        ],
        "grad_mode_off",
        RECORDED.replace("grad():", "grad():\n            pos.requires_grad_()"),
    ),
    "a derivative of a derivative": (
        [
            TWICE,
            "model.check(torch.ones(2, 3))",
            "r = validate(model, torch.ones(2, 3))",
        ],
        "grad_mode_off",
        "            return self.d(du, x) + u",
    ),
    "an evaluation of the user's own": (
        [
            MODEL,
            "@torch.no_grad()\ndef test(pos):\n    return model.force(pos)",
            "test(torch.ones(3))",
        ],
        "grad_mode_off",
        "        with torch.enable_grad():",
    ),
    "inference mode of the user's own": (
        [MODEL, "with torch.inference_mode():\n    f = model.force(torch.ones(2, 3))"],
        "grad_mode_off",
        "with torch.no_grad():\n    f = model",
    ),
    "enable_grad in inference mode": (
        [
            MODEL.replace("return self.f", "with torch.enable_grad():\n            return self.f"),
            "with torch.inference_mode():\n    f = model.check(torch.ones(2, 3))",
        ],
        "grad_mode_off",
        "with torch.no_grad():\n    f = model",
    ),
    "computed in between": (
        [
            ONCE,
            "g, = torch.autograd.grad(Soft.apply(x, 2).square().sum(), x, create_graph=True)\n"
            "g.sum().backward()",
        ],
        "no_second_derivative",
        "x, = ctx.saved_tensors\n        scale = 1 + x.abs()",
    ),
    "a derivative that came without a graph": (
        [
            ONCE,
            "g, = torch.autograd.grad(Soft.apply(x, 2).sum(), x, create_graph=True)\n"
            "g.sum().backward()",
        ],
        "no_second_derivative",
        "x, = ctx.saved_tensors\n        scale = 1 + x.abs()",
    ),
    "NumPy on the way to a loss": (
        [GAUSS, "loss = model(torch.ones(2, 3))", "loss.backward()"],
        "numpy_needs_detach",
        "torch.log(sigma).sum() + np.log(2 * np.pi)",
    ),
    "losses weighted in NumPy": (
        [
            "w = torch.ones(3, requires_grad=True)\nweights = np.array([0.5, 2.0])",
            "losses = [w.sum(), w.square().sum()]\n"
            "total = np.sum(weights * np.array(losses))\ntotal.backward()",
        ],
        "numpy_needs_detach",
        "total = torch.sum(torch.as_tensor(weights) * torch.stack(losses))",
    ),
    "in-place modules of a library": (
        [
            "net = Block()\nnet.act.register_full_backward_hook(lambda m, i, o: (i[0].abs(),))",
            "net(torch.ones(1, 1, 4, 4)).sum().backward()",
        ],
        "multi_view_written",
        'net = Block()\nfor new_module in net.modules():\n    if hasattr(new_module, "inplace"):',
    ),
}


def told(tmp_path: Path, cells: list[str]) -> tuple[tuple[str, ...], Played]:
    start = "import numpy as np\nimport torch\nfrom torch import nn\nfrom evallib import *"
    program = (start, *cells)
    return program, play(program)


@pytest.mark.parametrize("name", PROGRAMS)
def test_first_rewrite(name: str, tmp_path: Path) -> None:
    cells, cause, line = PROGRAMS[name]
    with installed(tmp_path, "evallib", LIBRARY):
        program, played = told(tmp_path, cells)
        assert played.diagnosis is not None and not played.trouble
        assert played.diagnosis.finding.cause == cause
        repaired = edited(program, played.diagnosis.rewrites[0])
        assert line in "\n".join(repaired)
        run(repaired)


def test_the_option_of_a_library(tmp_path: Path) -> None:
    """Nothing can be recorded in inference mode: what turns it on is told to leave it."""
    with installed(tmp_path, "evallib", LIBRARY):
        program, played = told(
            tmp_path, [MODEL, "runner = Runner(1)\nrunner.validate(model, torch.ones(2, 3))"]
        )
        assert played.diagnosis is not None
        assert played.diagnosis.finding.variant == "inference"
        repaired = edited(program, played.diagnosis.rewrites[0])
        assert "runner = Runner(1, inference_mode=False)" in repaired[2]
        assert RECORDED in repaired[1]
        run(repaired)


def test_what_is_only_shown_is_detached(tmp_path: Path) -> None:
    cells = ["w = torch.ones(3, requires_grad=True)\nloss = w.sum()\nloss.backward()", "np.exp(w)"]
    with installed(tmp_path, "evallib", LIBRARY):
        _, played = told(tmp_path, cells)
        assert played.diagnosis is not None
        assert [r.fix for r in played.diagnosis.rewrites] == ["detach"]


def test_a_backward_that_leaves_torch_stays_marked(tmp_path: Path) -> None:
    left = ONCE.replace("grad / scale ** 2", "grad / scale.detach() ** 2")
    cells = [
        left,
        "g, = torch.autograd.grad(Soft.apply(x, 2).exp().sum(), x, create_graph=True)\n"
        "g.sum().backward()",
    ]
    with installed(tmp_path, "evallib", LIBRARY):
        _, played = told(tmp_path, cells)
        assert played.diagnosis is not None
        assert "differentiable" not in [r.fix for r in played.diagnosis.rewrites]
