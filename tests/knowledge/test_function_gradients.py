"""Custom Functions whose `backward` ignores the gradient that comes in, and tricks that use it."""

from __future__ import annotations

import pytest
from knowledge.played import added, edited, play
from notebook import cells_of

from autograd_explain.model import Outcome, Safety

START = """# %%
import torch
from torch.autograd import Function
torch.manual_seed(0)
w = torch.randn(4, requires_grad=True)
# %%
class F(Function):
    @staticmethod
    def forward(ctx, x, k=2.0):
        ctx.save_for_backward(x)
        ctx.k = k
        return {forward}

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if not ctx.needs_input_grad[0]:
            return None
        return {backward}, None
# %%
loss = ({use} - 1).pow(2).sum()
loss.backward()
"""
#: forward, backward, its use, and the line that the rewrite brings in.
FAULTS = (
    ("x.exp()", "x.exp()", "F.apply(w, 1.0)", "return g * x.exp(), None"),
    ("x * k", "torch.full_like(x, ctx.k)", "F.apply(w * 3, 2.0)",
     "return g * torch.full_like(x, ctx.k), None"),
    ("x.square().sum()", "2 * x + 0", "F.apply(w, 1.0)", "return g * (2 * x + 0), None"),
)  # fmt: skip


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("forward", "backward", "use", "line"), FAULTS)
def test_an_ignored_gradient_is_named(forward: str, backward: str, use: str, line: str) -> None:
    cells = cells_of(START.format(forward=forward, backward=backward, use=use))
    found = play(cells, watched=True, verify=True)
    assert found.diagnosis is not None and found.trouble == "", found.output
    finding, (first, *_) = found.diagnosis.finding, found.diagnosis.rewrites
    assert (finding.cause, finding.variant) == ("function_gradients", "ignored")
    assert finding.facts["returned"] == backward and finding.facts["input"] == "x"
    assert finding.tensors[0].names == ("F", "w")
    assert first.outcome is Outcome.VERIFIED, found.output
    assert added(cells, edited(cells, first)) == [line]


#: What is meant: the gradient that comes in is used, or the output does not follow the input.
MEANT = {
    "straight-through": ("x.round()", "g"),
    "reversed": ("x.view_as(x)", "-ctx.k * g"),
    "clipped": ("x.clone()", "g.clamp(-0.1, 0.1)"),
    "surrogate": ("(x > 0).float()", "g / (1 + x.abs()) ** 2"),
    "replaced by another": ("x.clone()", "x.sign()"),
    "of a step": ("(x > 0).float()", "torch.ones_like(x)"),
    "with a penalty": ("x.clone()", "g + 0.1 * x.sign()"),
    "its derivative": ("x * k", "g * ctx.k"),
}


def test_tricks_are_no_alarm() -> None:
    head, function, use = cells_of(START)
    cells = [head]
    for forward, backward in MEANT.values():
        cell = f"{function}\n{use}".replace("{forward}", forward).replace("{backward}", backward)
        cells.append(cell.replace("{use}", "F.apply(w, 2.0) * w"))
    found = play(cells, watched=True, verify=True)
    assert found.diagnosis is None and found.trouble == "", found.output


def test_where_all_ones_come_in_nothing_is_wrong() -> None:
    text = START.format(forward="x.exp()", backward="x.exp()", use="F.apply(w, 1.0)")
    cells = cells_of(text.replace("(F.apply(w, 1.0) - 1).pow(2).sum()", "F.apply(w, 1.0).sum()"))
    assert play(cells, watched=True, verify=True).diagnosis is None


NONE = """# %%
import torch
from torch.autograd import Function
torch.manual_seed(0)
w, s = torch.randn(4, requires_grad=True), torch.tensor(0.7, requires_grad=True)
# %%
class F(Function):
    @staticmethod
    def forward(ctx, x, scale):
        z = x * scale
        y = torch.tanh(z)
        ctx.save_for_backward({saved})
        return y

    @staticmethod
    def backward(ctx, g):
        {taken} = ctx.saved_tensors
        return g * (1 - y**2) * k, None
# %%
loss = (F.apply(w, s) - 1).pow(2).sum(){more}
loss.backward({inputs})
"""
TAKEN = "torch.autograd.functional.vjp(lambda k: torch.tanh({x} * k), k, g)[1]"


@pytest.mark.parametrize(
    ("saved", "taken", "lines"),
    [
        ("y, x, scale", "y, a, k", [f"return g * (1 - y**2) * k, {TAKEN.format(x='a')}"]),
        (
            "y, scale",
            "y, k",
            [
                "ctx.save_for_backward(y, scale, x)",
                "y, k, x = ctx.saved_tensors",
                f"return g * (1 - y**2) * k, {TAKEN.format(x='x')}",
            ],
        ),
    ],
)
def test_none_for_what_the_output_follows(saved: str, taken: str, lines: list[str]) -> None:
    cells = cells_of(NONE.format(saved=saved, taken=taken, more="", inputs=""))
    found = play(cells, watched=True, verify=True)
    assert found.diagnosis is not None and found.trouble == "", found.output
    finding, (first, *_) = found.diagnosis.finding, found.diagnosis.rewrites
    assert (finding.cause, finding.variant) == ("function_gradients", "missing")
    assert finding.facts["input"] == "scale" and finding.tensors[0].names == ("F", "s")
    assert first.outcome is Outcome.VERIFIED, found.output
    assert added(cells, edited(cells, first)) == lines


def test_none_where_another_term_gives_the_rest() -> None:
    text = NONE.format(saved="y, x, scale", taken="y, a, k", more=" + s.square()", inputs="")
    found = play(cells_of(text), watched=True, verify=True)
    assert found.diagnosis is not None and found.trouble == "", found.output
    finding, (first, *_) = found.diagnosis.finding, found.diagnosis.rewrites
    assert (finding.cause, finding.variant) == ("function_gradients", "partly")
    assert finding.facts["input"] == "scale" and first.outcome is Outcome.VERIFIED, found.output


#: What takes another way to the codebook, where no gradient is asked for, what `w` is behind, too.
QUANTISED = NONE.replace("y = torch.tanh(z)", "y = z.round()").replace("g * (1 - y**2) * k", "g")
ELSEWHERE = {
    "a loss of its own": QUANTISED.format(saved="y", taken="y,", more=" + s.square()", inputs=""),
    "not asked for": NONE.format(saved="y, scale", taken="y, k", more="", inputs="inputs=[w]"),
    "a weight of itself": NONE.format(
        saved="y, scale", taken="y, k", more=" + w.sum()", inputs=""
    ).replace("apply(w, s)", "apply(w, w.mean())"),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_none_that_may_be_meant(name: str) -> None:
    found = play(cells_of(ELSEWHERE[name]), watched=True, verify=True)
    assert found.diagnosis is None and found.trouble == "", found.output


def test_a_stop_that_was_written_is_no_alarm() -> None:
    use = "F.apply(w, 1.0) * torch.ones(4, requires_grad=True)"
    text = START.format(forward="x.view_as(x)", backward="None", use=use)
    found = play(cells_of(text), watched=True, verify=True)
    assert found.diagnosis is None and found.trouble == "", found.output


#: A forward with two inputs that are owed a gradient, a backward that hands back the first one's.
SHORT = """# %%
import torch
c = torch.randn(3, 2, requires_grad=True)
z = torch.randn(4, 2, requires_grad=True)
class Nearest(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, c):
        i = torch.cdist(z, c).argmin(1)
        ctx.mark_non_differentiable(i)
        return c[i], {second}
    @staticmethod
    def backward(ctx, g, _):
        return g
# %%
(Nearest.apply(z, c)[0] * z.detach()).sum().backward()
"""


def test_a_value_too_few_that_is_owed_is_taken_by_autograd() -> None:
    cells = cells_of(SHORT.format(second="i"))
    found = play(cells)
    assert found.diagnosis is not None and found.trouble == ""
    assert added(cells, edited(cells, found.diagnosis.rewrites[0])) == [
        "ctx.save_for_backward(z, c)",
        "z, c = ctx.saved_tensors",
        "return g, torch.autograd.functional.vjp("
        "lambda c: c[torch.cdist(z, c).argmin(1)], c, g)[1]",
    ]


def test_a_value_owed_for_several_results_is_for_the_author_to_say() -> None:
    found = play(cells_of(SHORT.format(second="c * 2")))
    assert found.diagnosis is not None and not found.diagnosis.rewrites


@pytest.mark.parametrize(
    ("loss", "meaning"),
    [
        ("F.apply(w)[0].square().sum()", Safety.SAME_GRADIENTS),
        ("sum(part.sum() for part in F.apply(w))", Safety.CHANGES_MEANING),
    ],
)
def test_a_gradient_for_each_output(loss: str, meaning: Safety) -> None:
    head, function, use = cells_of(START.format(forward="x * k, x.round()", backward="g", use="w"))
    use = use.replace("(w - 1).pow(2).sum()", loss)
    found = play((head, function, use))
    assert found.diagnosis is not None and found.trouble == "", found.output
    finding, (first,) = found.diagnosis.finding, found.diagnosis.rewrites
    assert (finding.cause, finding.variant) == ("function_gradients", "taken")
    assert first.safety is meaning and finding.facts["gradient"] == "g"
    assert added((head, function, use), edited((head, function, use), first)) == [
        "def backward(ctx, g, grad_1):"
    ]


def test_a_backward_of_the_program_is_not_a_function_s() -> None:
    program = "# %%\nclass Trainer:\n    def backward(self, loss):\n        loss.backward()\n"
    found = play(cells_of(f"{program}# %%\nTrainer().backward(1, True)"))
    assert found.diagnosis is None and found.trouble == ""
