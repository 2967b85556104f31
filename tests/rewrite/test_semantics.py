"""Failing programs rewritten, run, and their gradients compared with the intended ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from rewriting import applied, at, cell, program_of, run

from autograd_explain.knowledge.second_backward.attribute import recompute_attribute
from autograd_explain.model import Edit, Place
from autograd_explain.program import Program
from autograd_explain.rewrite.transforms.casts import requires_grad_last
from autograd_explain.rewrite.transforms.clone import (
    clone_alias,
    clone_before_write,
    clone_operand,
    clone_result,
    functional_write,
)
from autograd_explain.rewrite.transforms.detach import detach_expression
from autograd_explain.rewrite.transforms.grad_mode import under_no_grad
from autograd_explain.rewrite.transforms.inplace_modules import module_not_inplace
from autograd_explain.rewrite.transforms.move_statement import move_before, toggled_run
from autograd_explain.rewrite.transforms.out_of_place import out_of_place
from autograd_explain.rewrite.transforms.recompute import compute_all_in_loop

Edits = tuple[Edit, ...] | None
Repair = Callable[[Program, Place], Edits]

OVERWRITTEN: list[tuple[str, str, list[Repair]]] = [
    (
        """
        w = torch.linspace(0, 1, 6, requires_grad=True)
        h = torch.tanh(w * 2)
        h += 1
        h.sum().backward()
        """,
        "h +=",
        [out_of_place, clone_before_write],
    ),
    (
        """
        w = torch.linspace(-1, 1, 6, requires_grad=True)
        h = torch.sigmoid(w)
        h.mul_(0.5).clamp_(min=0.2)
        h.sum().backward()
        """,
        "h.mul_",
        [out_of_place, clone_before_write],
    ),
    (
        """
        w = torch.linspace(-1, 1, 6, requires_grad=True)
        def act(v):
            y = torch.exp(v)
            return y.mul_(3)
        act(w).sum().backward()
        """,
        "return",
        [out_of_place],
    ),
    (
        """
        w = torch.linspace(-1, 1, 6, requires_grad=True)
        h = torch.exp(w)
        out = F.relu(h, inplace=True) + h
        out.sum().backward()
        """,
        "out =",
        [],
    ),
    (
        """
        w = torch.linspace(-1, 1, 6, requires_grad=True)
        h = torch.exp(w)
        h[h < 1] = 0
        (h * w).sum().backward()
        """,
        "h[h",
        [functional_write, clone_before_write],
    ),
    (
        """
        w = torch.linspace(-1, 1, 6, requires_grad=True)
        h = torch.exp(w)
        h[2:] += h[:4] * w[:4]
        (h * w).sum().backward()
        """,
        "h[2:]",
        [functional_write],
    ),
    (
        """
        w = torch.linspace(-1, 1, 6, requires_grad=True)
        q = torch.ones(3, 6)
        s = q * w
        q[0] = 5
        s.sum().backward()
        """,
        "q[0]",
        [functional_write, lambda p, _: clone_operand(p, at(p, "s ="), "q")],
    ),
    (
        """
        w = torch.linspace(-1, 1, 6, requires_grad=True)
        h = torch.sigmoid(w)
        hard = h.detach()
        hard[hard < 0.5] = 0
        h.sum().backward()
        """,
        "hard =",
        [clone_alias, lambda p, _: clone_result(p, at(p, "h ="))],
    ),
    (
        """
        net = nn.Sequential(nn.Linear(2, 2), nn.Sigmoid(), nn.ReLU(inplace=True))
        w = net[0].weight
        net(torch.ones(3, 2)).sum().backward()
        """,
        "net(torch",
        [module_not_inplace],
    ),
    (
        """
        w = torch.ones(2, requires_grad=True)
        h = torch.zeros(4, 2)
        for t in range(3):
            h[t + 1] = torch.tanh(h[t] * w + 1)
        h.sum().backward()
        """,
        "h[t + 1]",
        [functional_write, lambda p, _: clone_operand(p, at(p, "h[t]"), "h[t]")],
    ),
]


@pytest.mark.parametrize(("code", "needle", "repairs"), OVERWRITTEN)
def test_overwritten_values(code: str, needle: str, repairs: list[Repair]) -> None:
    code = cell(code)
    with torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda saved: saved):
        reference = run(code)["w"].grad
    for repair in repairs:
        if "F.relu" not in code:
            with pytest.raises(RuntimeError, match="modified by an inplace"):
                run(code)
        program = program_of(code)
        (text,) = applied(program, repair(program, at(program, needle, 2)))
        assert torch.allclose(run(text)["w"].grad, reference), text


def fixed(cells: list[str], repair: Callable[[Program], Edits], error: str) -> dict[str, Any]:
    cells = [cell(c) for c in cells]
    if error:
        with pytest.raises(RuntimeError, match=error):
            run(*cells)
    program = program_of(*cells)
    return run(*applied(program, repair(program)))


def test_update_under_no_grad() -> None:
    code = """
        w = torch.ones(3, requires_grad=True)
        for _ in range(2):
            (w * w).sum().backward()
            w -= 0.1 * w.grad
            w.grad.zero_()
        """
    names = fixed([code], lambda p: under_no_grad(p, at(p, "w -=")), "leaf Variable")
    assert torch.allclose(names["w"], torch.full((3,), 0.64))
    assert names["w"].is_leaf


def test_state_detached() -> None:
    code = """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn, self.state = nn.LSTM(2, 2), None

            def forward(self, x):
                out, self.state = self.rnn(x, self.state)
                return out

        net = Net()
        for _ in range(2):
            net(torch.ones(3, 1, 2)).sum().backward()
        """
    names = fixed(
        [code],
        lambda p: detach_expression(p, at(p, "out, self"), "self.state", state=True),
        "second time",
    )
    assert not names["net"].state[0].requires_grad


def test_penalty_computed_in_the_loop() -> None:
    cells = [
        "w = torch.ones(3, requires_grad=True)\nreg = w.pow(2).sum()\n",
        "for x in range(3):\n    loss = (w * x).sum() + reg\n    loss.backward()\n",
    ]
    names = fixed(
        cells, lambda p: compute_all_in_loop(p, [at(p, "reg =")], at(p, "loss =")), "second"
    )
    assert names["w"].grad.tolist() == [9.0, 9.0, 9.0]


def test_penalty_kept_on_the_model() -> None:
    model = """
        class Model(nn.Module):
            def __init__(self, l2):
                super().__init__()
                self.w = nn.Parameter(torch.ones(2))
                self.reg = torch.zeros(())
                for p in [self.w]:
                    self.reg = self.reg + l2 * p.pow(2).sum()
        """
    loop = """
        model = Model(0.5)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            opt.zero_grad()
            loss = model.w.sum() + model.reg
            loss.backward()
            opt.step()
        """
    names = fixed(
        [model, loop],
        lambda p: recompute_attribute(p, at(p, "self.reg = torch"), at(p, "loss ="), "reg"),
        "second time",
    )
    assert torch.allclose(names["model"].w, torch.full((2,), 0.62))


GAN = [
    """
    G, D = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    optD = torch.optim.SGD(D.parameters(), lr=0.1)
    fake = G(torch.ones(4, 2))
    d_loss = D(fake.detach()).mean()
    D.requires_grad_(False)
    g_loss = -D(fake).mean()
    D.requires_grad_(True)
    optD.zero_grad()
    d_loss.backward()
    optD.step()
    """,
    "g_loss.backward()\n",
]


def test_loss_computed_after_the_step() -> None:
    def repair(program: Program) -> Edits:
        run_ = toggled_run(program, at(program, "g_loss ="))
        assert run_ is not None
        return move_before(program, run_[0], at(program, "g_loss.backward"), run_[1])

    names = fixed(GAN, repair, "modified by an inplace")
    got = names["G"].weight.grad
    loss = -names["D"](names["G"](torch.ones(4, 2))).mean()
    assert torch.allclose(got, torch.autograd.grad(loss, names["G"].weight)[0])


@pytest.mark.parametrize(
    "code",
    [
        "x = torch.tensor([1., 2.], dtype=torch.float64, requires_grad=True).float()",
        "x = torch.rand(3, requires_grad=True).double()",
        "x = torch.rand(3, requires_grad=True) * 0.1",
        "x = nn.Parameter(torch.rand(3)) * 0.1",
    ],
)
def test_the_name_holds_the_leaf(code: str) -> None:
    program = program_of(code)
    (text,) = applied(program, requires_grad_last(program, at(program, code)))
    before, after = run(code)["x"], run(text)["x"]
    assert not before.is_leaf
    assert after.is_leaf and after.requires_grad
    assert after.dtype == before.dtype
    assert torch.equal(after, before)
