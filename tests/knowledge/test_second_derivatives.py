"""Custom Functions that are differentiated twice: what `forward` computed and kept is no constant,
and neither a surrogate gradient nor a mask is one by mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from knowledge.played import edited, explained
from knowledge.test_partial_cuts import played
from notebook import PATIENCE, installed

from autograd_explain.model import Certainty, Outcome, What
from autograd_explain.verification import independent_backward
from autograd_explain.verification.running import RunningFunctions

CLASS = """import torch
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        {forward}
    @staticmethod
    def backward(ctx, grad):
        {backward}
"""
PENALTY = """torch.manual_seed(0)
w = torch.randn(4, 3, requires_grad=True)
z = torch.randn(5, 4, requires_grad=True)
y = Own.apply(z @ w)
g, = torch.autograd.grad(y.sum(), z, create_graph=True)
loss = y.pow(2).mean() + (g.norm(dim=1) - 1).pow(2).mean()
loss.backward()
"""
#: What `forward` and `backward` do, what is to blame, and what the new `backward` begins with.
FAULTS = {
    "a saved factor": (
        ["s = torch.sigmoid(x)", "ctx.save_for_backward(x, s)", "return x * s"],
        ["x, s = ctx.saved_tensors", "return grad * (s + x * s * (1 - s))"],
        "ctx.save_for_backward(x, s)",
        ["x, = ctx.saved_tensors", "s = torch.sigmoid(x)"],
    ),
    "what an attribute keeps": (
        ["ctx.slope = 3 * torch.exp(3 * x)", "return torch.exp(3 * x)"],
        ["return grad * ctx.slope"],
        "ctx.slope = 3 * torch.exp(3 * x)",
        ["x, = ctx.saved_tensors", "ctx.slope = 3 * torch.exp(3 * x)"],
    ),
    "two steps of a computation": (
        ["t = x.tanh()", "d = 1 - t * t", "ctx.save_for_backward(d)", "return t.clone()"],
        ["(d,) = ctx.saved_tensors", "return grad * d"],
        "ctx.save_for_backward(d)",
        ["x, = ctx.saved_tensors", "t = x.tanh()", "d = 1 - t * t"],
    ),
}
MEANT = {
    "its input": (["ctx.save_for_backward(x)", "return x**3"],
                  ["(x,) = ctx.saved_tensors", "return grad * 3 * x * x"]),
    "its output": (["y = torch.exp(x)", "ctx.save_for_backward(y)", "return y"],
                   ["(y,) = ctx.saved_tensors", "return grad * y"]),
    "a mask": (["m = (x > 0).float()", "ctx.save_for_backward(m)", "return x * m"],
               ["(m,) = ctx.saved_tensors", "return grad * m"]),
    "a surrogate": (["ctx.save_for_backward(x)", "return (x > 0).float()"],
                    ["(x,) = ctx.saved_tensors", "return grad / (1 + x.abs()) ** 2"]),
    "a reversal": (["return x.view_as(x)"], ["return -grad"]),
}  # fmt: skip


def function(forward: list[str], backward: list[str]) -> str:
    inside = "\n        "
    return CLASS.format(forward=inside.join(forward), backward=inside.join(backward))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", FAULTS)
def test_what_counts_as_a_constant_is_computed_again(name: str) -> None:
    forward, backward, line, new = FAULTS[name]
    cells = (function(forward, backward), PENALTY)
    found = played(cells).diagnosis
    assert found is not None
    finding, rewrite = found.finding, found.rewrites[0]
    assert (finding.cause, finding.variant) == ("no_second_derivative", "kept")
    place = finding.place(What.CAUSE)
    assert place is not None and place.source.strip() == line
    assert rewrite.outcome is Outcome.VERIFIED, rewrite.reason
    lines = [text.strip() for text in edited(cells, rewrite)[0].splitlines()]
    at = lines.index("def backward(ctx, grad):") + 1
    assert lines[at : at + len(new)] == new


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", MEANT)
def test_a_whole_second_derivative_raises_no_alarm(name: str) -> None:
    forward, backward = MEANT[name]
    found = played((function(forward, backward), PENALTY))
    assert found.diagnosis is None, found.output


def test_a_first_derivative_alone_lacks_nothing() -> None:
    forward, backward, *_ = FAULTS["a saved factor"]
    text = "x = torch.ones(3, requires_grad=True)\nOwn.apply(x).pow(2).sum().backward()\n"
    assert played((function(forward, backward), text)).diagnosis is None


def test_the_derivative_that_is_differentiated_again_is_named() -> None:
    forward, backward = MEANT["its input"]
    text = function(forward, backward).replace(
        "    @staticmethod\n    def backward",
        "    @staticmethod\n    @torch.autograd.function.once_differentiable\n    def backward",
    )
    finding = explained((text, PENALTY.replace("y.sum()", "y.exp().sum()"))).finding
    assert (finding.cause, finding.variant) == ("no_second_derivative", "named")
    assert finding.tensors[0].names == ("g",)


def test_what_ran_attention_is_observed_under_watch() -> None:
    """The placeholder of the missing derivative has no number: that hides no other node."""
    text = """import torch
layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
x = torch.rand(2, 3, 8, requires_grad=True)
run = dict(layer=layer)
out = run["layer"](x)
slope, = torch.autograd.grad(out.square().sum(), x, create_graph=True)
slope.square().mean().backward()
"""
    finding = explained((f"%%autograd_check --budget {PATIENCE}\n{text}",)).finding
    cause = finding.event(What.CAUSE)
    assert cause is not None and cause.place is not None
    assert cause.place.source == 'out = run["layer"](x)'
    assert cause.certainty is Certainty.OBSERVED


def test_a_backward_that_may_run_once_hides_what_it_read() -> None:
    """The differentiated tensor is read behind it: torch says that it was not used."""
    forward, backward = MEANT["its input"]
    text = function(forward, backward).replace(
        "    @staticmethod\n    def backward",
        "    @staticmethod\n    @torch.autograd.function.once_differentiable\n    def backward",
    )
    use = """def slope(u, x):
    return torch.autograd.grad(u.sum(), x, create_graph=True)[0]
w = torch.randn(3, requires_grad=True)
z = torch.randn(3, requires_grad=True)
first = slope(w * Own.apply(2 * z), z)
second = slope(first, z)
"""
    finding = explained((text, use)).finding
    assert (finding.cause, finding.variant) == ("no_second_derivative", "named")
    assert finding.tensors[0].names == ("first",)
    place = finding.place(What.CAUSE)
    assert place is not None and place.source.strip() == "def backward(ctx, grad):"


def test_what_lacks_a_derivative_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question is many applications, and the reference run trains to its end."""
    asked, ask = [], independent_backward.lacking_derivatives

    def counted(cls: Any, *given: Any) -> tuple[int, ...]:
        asked.append(cls)
        return ask(cls, *given)

    monkeypatch.setattr(independent_backward, "lacking_derivatives", counted)
    forward, backward, *_ = FAULTS["a saved factor"]
    space: dict[str, Any] = {}
    running = RunningFunctions()
    with independent_backward.IgnoredGradients(space, running, mends=True).watch():
        exec(function(forward, backward) + PENALTY + PENALTY, space)
    assert len(asked) == 1


ENGINE = """
class Engine:
    def backward(self, loss):
        (loss / 1).backward()
    def fit(self, module, x):
        module.training_step(x).backward()
"""
CRITIC = """import torch
from enginelib import Engine
body = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
def penalty(out, x):
    slope = torch.autograd.grad(out.square().sum(), x, create_graph=True)[0]
    return slope.square().mean()
"""


@pytest.mark.parametrize(
    "use",
    [
        "x = torch.rand(2, 3, 8, requires_grad=True)\nout = body(x)\nloss = penalty(out, x)\n"
        "Engine().backward(loss)\n",
        "class Gan:\n    def training_step(self, x):\n        out = body(x)\n"
        "        return penalty(out, x)\n"
        "Engine().fit(Gan(), torch.rand(2, 3, 8, requires_grad=True))\n",
    ],
)
def test_a_library_goes_back_through_a_derivative(use: str, tmp_path: Path) -> None:
    with installed(tmp_path, "enginelib", ENGINE):
        found = explained((CRITIC, use))
    assert (found.finding.cause, found.finding.variant) == ("no_second_derivative", "kernel")
    assert found.finding.tensors[0].names == ("slope", "x")
    place = found.finding.place(What.CAUSE)
    assert place is not None and place.source.strip() == "out = body(x)"
    assert found.rewrites[0].fix == "plain_attention"


def test_a_loss_without_a_derivative_names_none(tmp_path: Path) -> None:
    """What fails is a derivative that the library itself has taken."""
    library = """import torch
def smooth(out, x):
    slope, = torch.autograd.grad(out.sum(), x, create_graph=True)
    slope.square().sum().backward()
"""
    use = "x = torch.rand(2, 3, 8, requires_grad=True)\nout = body(x)\nsmooth(out, x)\n"
    with installed(tmp_path, "enginelib", library):
        found = explained((CRITIC.replace("import Engine", "import smooth"), use))
    assert found.finding.cause == "no_second_derivative" and not found.finding.tensors
