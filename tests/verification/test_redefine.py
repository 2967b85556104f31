"""Functions of earlier cells and of files, edited where they live."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograd_explain.model import Edit, Outcome
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.verification import verify
from autograd_explain.verification.redefine import bodies_alone

#: What no replay may do again.
SETUP = """
import subprocess
import torch
subprocess.run(["true"])
w = torch.ones(3, requires_grad=True)
"""
LAYER = """
def wrapped(function):
    def inner(x):
        return function(x)
    return inner

class Layer:
    def __init__(self, scale):
        self.scale = scale

    @wrapped
    def static(x):
        return x

    def forward(self, x):
        def grow(y):
            y *= self.scale
            return y
        return grow(x.exp())

layer = Layer(2)
"""
RUN = "layer.forward(w).sum().backward()"


def test_a_function_of_a_cell_that_cannot_run_again(play: Callable[..., Any]) -> None:
    played = play(SETUP, LAYER, RUN)
    right = played.try_out(("y *= self.scale", "y = y * self.scale"))
    assert right.outcome is Outcome.VERIFIED
    wrong = played.try_out(("y *= self.scale", "y = y * 3"))
    assert wrong.outcome is Outcome.DIFFERS
    assert played.checkpoint.stranded.key == "needs_subprocess"


def test_a_function_of_a_file(
    play: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "layers_of_mine.py"
    text = "def double(y):\n    y.mul_(2)\n    return y\n"
    file.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    played = play(
        SETUP,
        "from layers_of_mine import double",
        "double(w.exp()).sum().backward()",
    )
    edit = Edit(None, str(file), text, text.replace("y.mul_(2)", "y = y.mul(2)"))
    (rewrite,) = verify([Proposal("fix", (edit,))], played.request())
    assert rewrite.outcome is Outcome.VERIFIED
    import layers_of_mine

    assert "mul_" in layers_of_mine.double.__code__.co_names


def test_a_constructor_whose_objects_the_cell_makes(play: Callable[..., Any]) -> None:
    layer = "class Grow:\n    def __init__(self):\n        self.twice = True\n"
    layer += "    def __call__(self, y):\n        return y.mul_(2) if self.twice else y * 2"
    run = "grow = Grow()\ngrow(w.exp()).sum().backward()"
    played = play(SETUP, layer, run)
    rewrite = played.try_out(("twice = True", "twice = False"))
    assert rewrite.reason.values["names"] == "grow.twice"  # its gradients are the reference's


def test_what_the_state_was_made_with_shows_nothing(play: Callable[..., Any]) -> None:
    """The graph of an earlier cell stays as it was: that this fails says nothing of the edit."""
    kept = "def make(x):\n    return x.exp()\nh = make(w)\nh.sum().backward()"
    played = play(SETUP, kept, "h.sum().backward()")
    proposal = played.proposal(("return x.exp()", "return x.exp().detach()"))
    (rewrite,) = verify([proposal], played.request())
    assert rewrite.outcome is Outcome.NOT_TRIED
    assert rewrite.reason.key == "needs_subprocess"


@pytest.mark.parametrize(
    ("old", "new", "alone"),
    [
        ("def f():\n    a\nb", "def f():\n    c\nb", True),
        ("def f():\n    a\nb", "def f():\n    a\nc", False),
        ("def f(x):\n    a", "def f(x, y):\n    a", False),
        ("def f():\n    a", "@g\ndef f():\n    a", False),
        ("class A:\n    def f(self):\n        a", "class A:\n    def f(self):\n        b", True),
        (
            "class A:\n    def __init__(self):\n        a",
            "class A:\n    def __init__(self):\n        b",
            True,
        ),
        (
            "class A:\n    def __init__(self):\n        a\n    def f(self):\n        a",
            "class A:\n    def __init__(self):\n        b\n    def f(self):\n        b",
            False,
        ),
        ("%time a\ndef f():\n    a", "%time a\ndef f():\n    b", True),
        ("def f(:", "def f(:", False),
    ],
)
def test_bodies_alone(old: str, new: str, alone: bool) -> None:
    assert bodies_alone([Edit(1, None, old, new)]) is alone
