"""What `torch.autograd.grad` is told about inputs that are not used."""

from __future__ import annotations

import pytest
from rewriting import at, program_of, result, spot

from autograd_explain.knowledge.unused_in_graph.unused import (
    counted_as_zero,
    unused_allowed,
    unused_as_zeros,
)

CODE = """
def update(loss, params):
    grads = torch.autograd.grad(loss, params, create_graph=True)
    return [p - g for p, g in zip(params, grads)]
"""


def test_zeros_where_the_gradients_are_computed_with() -> None:
    program = program_of(CODE)
    text = result(unused_as_zeros(program, spot(program, "params, create")))
    assert text is not None
    assert "(loss, params, create_graph=True, materialize_grads=True)" in text


def test_no_zeros_where_none_is_expected() -> None:
    code = CODE.replace("p - g for", "p if g is None else p - g for")
    program = program_of(code)
    place = spot(program, "params, create")
    assert unused_as_zeros(program, place) is None
    text = result(unused_allowed(program, place))
    assert text is not None
    assert "(loss, params, create_graph=True, allow_unused=True)" in text


def test_nothing_said_twice() -> None:
    program = program_of(CODE.replace("create_graph", "allow_unused=False, create_graph"))
    place = spot(program, "params, allow")
    assert unused_as_zeros(program, place) is None
    assert unused_allowed(program, place) is None


def test_no_zeros_where_nothing_computes_with_the_gradients() -> None:
    program = program_of("grads = torch.autograd.grad(loss, [w, v])\n")
    assert unused_as_zeros(program, spot(program, "[w, v]")) is None


def test_zeros_inside_a_larger_expression() -> None:
    program = program_of("n = sum(g.norm() for g in torch.autograd.grad(loss, ws))\n")
    text = result(unused_as_zeros(program, spot(program, "ws")))
    assert text == (
        "n = sum(g.norm() for g in torch.autograd.grad(loss, ws, materialize_grads=True))\n"
    )


def test_nothing_allowed_where_the_gradient_is_computed_with() -> None:
    program = program_of("def slope(y, x):\n    return torch.autograd.grad(y, x)[0]\n")
    assert unused_allowed(program, spot(program, "y, x)[")) is None
    program = program_of("g = torch.autograd.grad(y, x)[0]\nif g is None:\n    g = 0 * x\n")
    assert unused_allowed(program, spot(program, "y, x")) is not None


def test_zeros_where_another_method_computes_with_the_gradients() -> None:
    program = program_of("""
        class Meter:
            def compute(self, loss):
                self.grads = torch.autograd.grad(loss, self.ps)
            def norm(self):
                return sum(g.norm() for g in self.grads)
        """)
    assert unused_allowed(program, spot(program, "self.ps")) is None
    assert unused_as_zeros(program, spot(program, "self.ps")) is not None


LIBRARY = "from explain.attr import Explainer\n"
COUNTED = "Explainer(lambda *given: net(*given) + 0 * sum(t.sum() for t in given))"


@pytest.mark.parametrize(
    "code",
    [
        "e = @\na, b = e.attribute((x, y), target=1)\n",
        "given = (x, y)\na, b = @.attribute(given)\n",
        "class E:\n    def __init__(self):\n        self.e = @\n    def run(self, x, y):\n"
        "        return self.e.attribute((x, y))\n",
    ],
)
def test_a_librarys_object_counts_what_is_not_used(code: str) -> None:
    program = program_of(LIBRARY + code.replace("@", "Explainer(net)"))
    found = result(counted_as_zero(program, at(program, "attribute")))
    assert found == LIBRARY + code.replace("@", COUNTED)


@pytest.mark.parametrize(
    "code",
    [
        LIBRARY + "e = Explainer(net)\na = e.attribute(x)\n",  # nothing else has a gradient
        "e = nn.Sequential(net)\na = e.attribute((x, y))\n",
        "e = Own(net)\na = e.attribute((x, y))\n",
    ],
)
def test_what_is_no_object_of_a_librarys_stays(code: str) -> None:
    program = program_of(code)
    assert counted_as_zero(program, at(program, "attribute")) is None
