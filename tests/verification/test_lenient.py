"""References for programs that torch refuses: sound where only one gradient can be meant."""

import pytest

from autograd_explain.model import Outcome

DESCENT = """
import torch
x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
w = torch.ones(2, requires_grad=True)
for step in range(2):
    w.grad = None
    (x @ w).pow(2).sum().backward()
    w -= 0.01 * w.grad
"""
NO_GRAD = ("    w -= 0.01 * w.grad", "    with torch.no_grad():\n        w -= 0.01 * w.grad")


def test_an_update_of_a_leaf(play):
    rewrite = play(DESCENT).try_out(NO_GRAD)
    assert rewrite.outcome is Outcome.VERIFIED
    assert rewrite.comparison.compared == ("w.grad",)


def test_gradients_that_are_zeroed_after_the_update(play):
    """What is left in `.grad` shows nothing, what the last backward gave does."""
    text = DESCENT.replace("    w.grad = None\n", "") + "    w.grad.zero_()\n"
    assert play(text).try_out(NO_GRAD).outcome is Outcome.VERIFIED


def test_an_update_that_never_moves_the_leaf_differs(play):
    rewrite = play(DESCENT).try_out(("    w -= 0.01 * w.grad", "    0.01 * w.grad"))
    assert rewrite.outcome is Outcome.DIFFERS


def test_an_update_in_a_detached_copy_differs(play):
    change = ("    w -= 0.01 * w.grad", "    w = (w - 0.02 * w.grad).detach().requires_grad_()")
    assert play(DESCENT).try_out(change).outcome is Outcome.DIFFERS


FILL = "import torch\nw = torch.ones(2, requires_grad=True)\n{}\n(w * 3).pow(2).sum().backward()"


@pytest.mark.parametrize("write", ["w.fill_(0.5)", "w.uniform_(-1, 1)", "w += 1", "w[:] = 2.0"])
def test_a_write_with_one_reading(play, write):
    change = (write, f"with torch.no_grad():\n    {write}")
    assert play(FILL.format(write)).try_out(change).outcome is Outcome.VERIFIED


@pytest.mark.parametrize("write", ["w.mul_(2)", "w[0] = 0.0", "w.pow_(2)", "w[:1] *= 2"])
def test_a_write_with_two_readings(play, write):
    """The gradient may be meant for the value before or after it."""
    change = (write, f"with torch.no_grad():\n    {write}")
    rewrite = play(FILL.format(write)).try_out(change)
    assert rewrite.outcome is Outcome.RUNS
    assert rewrite.reason.values["why"] == "ambiguous"


def test_a_write_of_something_with_a_history_has_two_readings(play):
    text = """
import torch
p, q = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
p.copy_(0.9 * p + 0.1 * q)
(p * 3).pow(2).sum().backward()
"""
    change = ("p.copy_", "with torch.no_grad():\n    p.copy_")
    assert play(text).try_out(change).outcome is Outcome.RUNS


def test_numbers_for_numpy_carry_no_gradient(play):
    text = """
import torch
w = torch.ones(2, requires_grad=True)
loss = (w * 3).pow(2).sum()
loss.backward()
history = [loss.numpy()]
"""
    rewrite = play(text).try_out(("loss.numpy()", "loss.detach().numpy()"))
    assert rewrite.outcome is Outcome.VERIFIED
    wrong = play(text).try_out(("loss.numpy()", "(2 * loss).detach().numpy()"))
    assert wrong.outcome is Outcome.DIFFERS


def test_one_of_several_views(play):
    text = """
import torch
w = torch.ones(4, requires_grad=True)
x = w * 2
a, b = x.chunk(2)
a.mul_(3)
(x * torch.arange(4.0)).sum().backward()
"""
    right = ("a, b = x.chunk(2)", "a, b = x[:2], x[2:]")
    assert play(text).try_out(right).outcome is Outcome.VERIFIED
    assert play(text).try_out(("a.mul_(3)", "a = a.mul(3)")).outcome is Outcome.DIFFERS


def test_one_of_several_views_of_a_saved_value(play):
    text = """
import torch
w = torch.tensor([1.0, -1.0, 2.0, 3.0], requires_grad=True)
x = torch.relu(w * 2)
a, b = x.split(2)
a.mul_(3)
(x * torch.arange(4.0)).sum().backward()
"""
    right = ("a, b = x.split(2)\na.mul_(3)", "x = x * torch.tensor([3.0, 3.0, 1.0, 1.0])")
    rewrite = play(text).try_out(right)
    assert rewrite.outcome is Outcome.VERIFIED


def test_a_view_made_under_no_grad(play):
    text = """
import torch
w = torch.ones(2, requires_grad=True)
canvas = torch.zeros(4)
with torch.no_grad():
    slots = [canvas[:2], canvas[2:]]
slots[0].copy_(w * 3)
slots[1].copy_(torch.ones(2))
canvas.pow(2).sum().backward()
"""
    rewrite = play(text).try_out(
        ("slots[0].copy_", "canvas[:2].copy_"), ("slots[1].copy_", "canvas[2:].copy_")
    )
    assert rewrite.outcome is Outcome.VERIFIED


def test_a_non_leaf_in_an_optimizer(play):
    text = """
import torch
{}
x = {}
opt = torch.optim.SGD([x], lr=0.1)
x.pow(2).sum().backward()
opt.step()
"""
    played = play(text.format("pass", "torch.ones(2, requires_grad=True) * 2"))
    change = (
        "x = torch.ones(2, requires_grad=True) * 2",
        "x = (torch.ones(2) * 2).requires_grad_()",
    )
    assert played.try_out(change).outcome is Outcome.VERIFIED
    held = play(text.format("base = torch.ones(2, requires_grad=True)", "base * 2"))
    rewrite = held.try_out(("x = base * 2", "x = (base * 2).detach().requires_grad_()"))
    assert rewrite.outcome is Outcome.RUNS


def test_the_gradient_of_an_intermediate(play):
    text = """
import torch
w = torch.ones(2, requires_grad=True)
h = w * 2
y = h * 3
y.pow(2).sum().backward()
seen = h.grad
"""
    retained = play(text).try_out(("y = h * 3", "h.retain_grad()\ny = h * 3"))
    assert retained.outcome is Outcome.VERIFIED
    assert "h.grad" in retained.comparison.compared
    cut = play(text).try_out(("h = w * 2", "h = (w * 3).detach().requires_grad_()"))
    assert cut.outcome is Outcome.DIFFERS
