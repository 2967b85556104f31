"""The gradient read of the parameters themselves."""

from __future__ import annotations

from dataclasses import replace

from rewriting import program_of, result, spot

from autograd_explain.knowledge.no_gradient_yet.own_gradient import (
    parameters_themselves,
    read_of_leaf,
)
from autograd_explain.model import Place, Span
from autograd_explain.program import Program


def first(program: Program, text: str, length: int) -> Place:
    """The place of the first characters of a text."""
    place = spot(program, text)
    assert place.span is not None
    line, column = place.span.line, place.span.column
    return replace(place, span=Span(line, column, line, column + length))


def of_leaf(code: str) -> str | None:
    program = program_of(code)
    read, leaf = first(program, "d.grad.norm", 1), first(program, "p.data", 1)
    return result(read_of_leaf(program, read, leaf))


def test_every_reading() -> None:
    code = "d = p.data\nn = d.grad.norm()\nprint(d.grad)\n"
    assert of_leaf(code) == code.replace("d.grad", "p.grad")


def test_another_function_has_its_own_name() -> None:
    code = "def show(d):\n    print(d.grad)\n\n\nd = p.data\nn = d.grad.norm()\n"
    assert of_leaf(code) == code.replace("d.grad.norm", "p.grad.norm")


def test_declined_for_several_values() -> None:
    assert of_leaf("d = p.data\nn = d.grad.norm()\nd = q.data\nprint(d.grad)\n") is None


def test_names_of_a_state_dict() -> None:
    def rewritten(given: str) -> str | None:
        program = program_of(code.format(given))
        place = spot(program, f"net.state_dict({given})")
        return result(parameters_themselves(program, place))

    code = "for k, v in net.state_dict({}).items():\n    print(k, v.grad)\n"
    assert rewritten("") == code.replace("state_dict({}).items", "named_parameters")
    assert rewritten("prefix='a.'") is None
