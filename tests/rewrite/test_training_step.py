"""The training step, and how modules hold their layers."""

from __future__ import annotations

import pytest
from rewriting import at, program_of, result, rewritten

from autograd_explain.model import Edits, Place
from autograd_explain.program import Program
from autograd_explain.rewrite.transforms.move_statement import move_before
from autograd_explain.rewrite.transforms.spot import Spot
from autograd_explain.rewrite.transforms.training_step import (
    cleared_with_the_step,
    module_list,
    parameter_attribute,
    zero_grad_before,
)


def test_zero_grad_first() -> None:
    program = program_of("loss.backward()\nopt.zero_grad()\nopt.step()\n")
    text = result(move_before(program, at(program, "zero"), at(program, "backward")))
    assert text == "opt.zero_grad()\nloss.backward()\nopt.step()\n"


def test_zero_grad_does_not_pass_a_step() -> None:
    program = program_of("loss.backward()\nopt.step()\nopt.zero_grad()\n")
    assert move_before(program, at(program, "zero"), at(program, "backward")) is None


def test_cleared_with_a_step_that_not_every_round_has() -> None:
    program = program_of("for b in bs:\n    opt.zero_grad()\n    if b:\n        opt.step()\n")
    assert result(cleared_with_the_step(program, at(program, "zero"), at(program, "step"))) == (
        "for b in bs:\n    if b:\n        opt.step()\n        opt.zero_grad()\n"
    )
    program = program_of("with f():\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n")
    assert result(cleared_with_the_step(program, at(program, "zero"), at(program, "step"))) == (
        "with f():\n    loss.backward()\n    opt.step()\n    opt.zero_grad()\n"
    )
    program = program_of("loss.backward()\nopt.step()\nopt.zero_grad()\n")
    assert cleared_with_the_step(program, at(program, "zero"), at(program, "step")) is None


def cleared_before(code: str) -> str | None:
    program = program_of(code)
    return result(zero_grad_before(program, at(program, "step"), at(program, "backward")))


def test_zero_grad_before_the_backward_of_a_step() -> None:
    assert cleared_before("loss = f()\nloss.backward()\no.d.step()\n") == (
        "loss = f()\no.d.zero_grad()\nloss.backward()\no.d.step()\n"
    )
    assert cleared_before("for p in ps:\n    f(p).backward()\nopt.step()\n") == (
        "opt.zero_grad()\nfor p in ps:\n    f(p).backward()\nopt.step()\n"
    )


def test_zero_grad_before_declines() -> None:
    assert cleared_before("opt.step()\nloss.backward()\n") is None
    assert cleared_before("def f():\n    loss.backward()\nopt.step()\n") is None
    assert cleared_before("loss.backward()\nscaler.step(opt)\n") is None


def test_a_statement_taken_out() -> None:
    def removed(program: Program, place: Place) -> Edits | None:
        return Spot(program, place).removed()

    assert rewritten(removed, "a = 1\nb = 2  # c\nd = 3\n", "b =") == "a = 1\nd = 3\n"
    assert rewritten(removed, "if c:\n    b = 2\n", "b =") == "if c:\n    pass\n"


LISTS = [
    (
        "self.ls = [nn.Linear(1, 1) for _ in r]",
        "self.ls = nn.ModuleList([nn.Linear(1, 1) for _ in r])",
    ),
    ("self.ls = [nn.Parameter(t), u]", "self.ls = nn.ParameterList([nn.Parameter(t), u])"),
    ("self.ls = {'a': nn.Linear(1, 1)}", "self.ls = nn.ModuleDict({'a': nn.Linear(1, 1)})"),
    ("self.ls = nn.Linear(1, 1)", None),
]


@pytest.mark.parametrize(("before", "after"), LISTS)
def test_module_list(before: str, after: str | None) -> None:
    assert rewritten(module_list, before, before) == after


def test_parameter_attribute() -> None:
    code = "self.w = torch.randn(3, requires_grad=True)"
    assert rewritten(parameter_attribute, code, code) == "self.w = nn.Parameter(torch.randn(3))"
    assert rewritten(parameter_attribute, "self.w = nn.Parameter(x)", "self") is None
