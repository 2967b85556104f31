"""Calls and statements changed as text, and places that nobody knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from rewriting import at, program_of, result, spot

from autograd_explain.model import Edit, Place, Span
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.draft import Draft, Drafts
from autograd_explain.rewrite.engine.proposal import differing
from autograd_explain.rewrite.engine.tree import statement_at, tree_at
from autograd_explain.rewrite.transforms.call_edits import detached_instead
from autograd_explain.rewrite.transforms.clone import clone_alias
from autograd_explain.rewrite.transforms.grad_mode import (
    out_of_block,
    remove_grad_switch,
    under_no_grad,
    without_decorator,
)
from autograd_explain.rewrite.transforms.move_statement import move_after
from autograd_explain.rewrite.transforms.spot import Spot

PROGRAM = program_of("a = f(x + 1)\nb = g(a)\n")


@pytest.mark.parametrize(
    "transform",
    [
        clone_alias,
        remove_grad_switch,
        under_no_grad,
        without_decorator,
        lambda program, place: out_of_block(program, place, [place]),
        lambda program, place: move_after(program, place, at(program, "b =")),
        lambda program, place: move_after(program, at(program, "a ="), place),
        lambda program, place: Spot(program, place).behind("c = 1\n"),
    ],
)
def test_where_no_place_is_known_nothing_is_edited(
    transform: Callable[[Program, Place | None], tuple[Edit, ...] | None],
) -> None:
    assert transform(PROGRAM, None) is None


def test_torch_has_the_name_that_it_has_there() -> None:
    place = spot(PROGRAM, "f(x + 1)")
    assert "a = torch.tensor(f(x + 1))\n" in (
        result(Spot(PROGRAM, place).replaced("{torch}.tensor({x})")) or ""
    )
    assert "f(x + 1, dtype=torch.float32)" in (
        result(Spot(PROGRAM, place).given("dtype", "{torch}.float32")) or ""
    )
    unknown = Program(PROGRAM.cells[1:])
    assert Spot(unknown, place).replaced("{torch}.tensor({x})") is None


def test_a_keyword_goes_behind_the_parentheses_of_the_last_argument() -> None:
    program = program_of("y = f(a, (b + c))\nz = g((b))\n")
    for call, new in (("f(a, (b + c))", "f(a, (b + c), k=1)"), ("g((b))", "g((b), k=1)")):
        assert new in (result(Spot(program, spot(program, call)).given("k", "1")) or "")


def test_an_operand_gets_the_parentheses_that_it_needs() -> None:
    edits = Spot(PROGRAM, spot(PROGRAM, "x + 1")).replaced("{x}.detach()")
    assert "a = f((x + 1).detach())\n" in (result(edits) or "")


CALL = "y = net.sub.draw(\n    x, k=2)\n"
TEMPLATES = [
    ("{owner}.rsample{arguments}", "y = net.sub.rsample(\n    x, k=2)\n"),
    ("{function}()", "y = net.sub.draw()\n"),
    ("{owner}", "y = net.sub\n"),
    ("torch.draw{arguments}", "y = torch.draw(\n    x, k=2)\n"),
    ("-{x}", "y = -net.sub.draw(\n    x, k=2)\n"),
]


def test_parts_are_given_as_text_or_as_places() -> None:
    a, b = spot(PROGRAM, "f(x + 1)"), spot(PROGRAM, "g(a)")
    assert "b = h(f(x + 1), {y})\n" in (
        result(Spot(PROGRAM, b).replaced("h({first}, {set})", first=a, set="{y}")) or ""
    )
    assert Spot(PROGRAM, b).replaced("h({first})", first=None) is None
    assert Spot(PROGRAM, b).replaced("{first}", first="") is None
    assert Spot(PROGRAM, b).behind("{text}.clear()", text="") is None
    both = Spot(PROGRAM, b).before("{m}.train()\n{m}.eval()\n", m="net")
    assert "net.train()\nnet.eval()\nb = g(a)\n" in (result(both) or "")


def test_several_expressions_change_together_or_not_at_all() -> None:
    program = program_of("a = f(x)\nb = g.h(x)\n")
    f, h = spot(program, "f(x)"), spot(program, "g.h(x)")
    both = Spot(program, f).at(f, h)
    assert result(both.replaced("{x}.sum()")) == "a = f(x).sum()\nb = g.h(x).sum()\n"
    assert result(both.given("k", "1")) == "a = f(x, k=1)\nb = g.h(x, k=1)\n"
    assert both.replaced("{owner}") is None


LEFT_OUT = [
    ("net.half()\ny = 1\n", "y = 1\n"),
    ("net = net.half()\ny = 1\n", "y = 1\n"),
    ("y = f(net.half())\n", "y = f(net)\n"),
    ("other = net.half()\n", "other = net\n"),
]


@pytest.mark.parametrize(("before", "after"), LEFT_OUT)
def test_a_call_is_left_out(before: str, after: str) -> None:
    program = program_of(before)
    assert result(Spot(program, spot(program, "net.half()")).left_out("{owner}")) == after


def test_an_argument_is_found_by_name_or_position() -> None:
    program = program_of("y = f(a, b, k=c)\n")
    call = Spot(program, spot(program, "f(a, b, k=c)"))
    assert result(call.argument("k").called("detach")) == "y = f(a, b, k=c.detach())\n"
    assert result(call.argument("j", 1).called("detach")) == "y = f(a, b.detach(), k=c)\n"
    assert call.argument("j").called("detach") is None


@pytest.mark.parametrize(("template", "after"), TEMPLATES)
def test_an_expression_is_made_of_the_parts_of_another(template: str, after: str) -> None:
    program = program_of(CALL)
    place = spot(program, "net.sub.draw(")
    place = replace(place, span=Span(1, 4, 2, 11))
    assert result(Spot(program, place).replaced(template)) == after


def test_a_part_that_is_missing_makes_no_expression() -> None:
    assert Spot(PROGRAM, spot(PROGRAM, "f(x + 1)")).replaced("{owner}.g{arguments}") is None
    assert Spot(PROGRAM, spot(PROGRAM, "x + 1")).replaced("{function}()") is None


def test_a_keyword_gets_another_name() -> None:
    program = program_of("y = f(x, axis=1, keepdims=True)\n")
    place = spot(program, "f(x, axis=1, keepdims=True)")
    assert result(Spot(program, place).renamed("axis", "dim")) == (
        "y = f(x, dim=1, keepdims=True)\n"
    )
    assert Spot(program, place).renamed("dim", "axis") is None
    assert Spot(program, place).renamed("axis", "keepdims") is None  # given twice


DETACHED = [
    ("x.requires_grad_(False)\n", "x = x.detach()\n"),
    ("x.requires_grad = False\n", "x = x.detach()\n"),
    ("x.detach_()\n", "x = x.detach()\n"),
    ("f(x.detach_(), 1)\n", "f(x.detach(), 1)\n"),
    ("y = x.requires_grad_(False).numpy()\n", "y = x.detach().numpy()\n"),
]


@pytest.mark.parametrize(("before", "after"), DETACHED)
def test_a_tensor_is_detached_instead(before: str, after: str) -> None:
    program = program_of(before)
    assert result(detached_instead(program, spot(program, "x"))) == after


def test_statements_go_together_and_a_block_is_opened() -> None:
    program = program_of("with guard():\n    a = 1  # one\n    b = 2\nc = 3\n")
    tree, block = statement_at(program, at(program, "with"))
    first, last = (tree.statement(at(program, needle)) for needle in ("a =", "c ="))
    assert block is not None and first is not None and last is not None
    assert tree.siblings(last) == ([block, last], 1) and tree.outer(first) is block
    opened = Draft(tree).opened(block).edits()  # type: ignore[arg-type]
    assert result(opened) == "a = 1  # one\nb = 2\nc = 3\n"
    moved = Draft(tree).move([last], block, after=False).edits()
    assert result(moved) == "c = 3\nwith guard():\n    a = 1  # one\n    b = 2\n"


def test_several_drafts_are_all_or_none() -> None:
    tree, statement = statement_at(PROGRAM, at(PROGRAM, "a ="))
    assert statement is not None
    removed, drafts = Draft(tree).remove(statement), Drafts()
    drafts[tree].remove(statement)
    assert drafts.edits() == removed.edits() is not None
    drafts[tree_at(PROGRAM, None)].remove(None)
    assert drafts.edits() is None and Drafts().edits() is None


def test_what_differs_on_purpose_is_proposed_where_it_can_be_made() -> None:
    assert not list(differing("detach", None)) and not list(differing("detach", ()))
    (proposal,) = differing("detach", Spot(PROGRAM, at(PROGRAM, "b =")).behind("c = 1\n"))
    assert proposal.intended_difference


def test_the_ends_of_a_range_are_empty() -> None:
    assert Span(1, 2, 3, 4).start == Span(1, 2, 1, 2)
    assert Span(1, 2, 3, 4).end == Span(3, 4, 3, 4)


def test_what_is_around_a_part_of_a_range() -> None:
    whole, part = Span(1, 2, 3, 4), Span(2, 0, 2, 9)
    assert whole.holds(part) and whole.holds(whole) and not part.holds(whole)
    assert whole.until(part) == Span(1, 2, 2, 0)
    assert whole.since(part) == Span(2, 9, 3, 4)
