"""From a place to its statement."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest
from rewriting import at, program_of, spot

from autograd_explain.model import Place, Span
from autograd_explain.rewrite.engine.tree import normal, tree_at, tree_of

CODE = """
@deco
def f(a,
      b=1):
    x = (a +
         b)
    if x: y = 1; z = 2
    else:
        y = 3
    return [
        y, x]
"""
LINES = [
    (1, "f"),
    (2, "f"),
    (3, "f"),
    (4, "x = (a +\n     b)"),
    (5, "x = (a +\n     b)"),
    (8, "y = 3"),
    (9, "return [\n    y, x]"),
    (10, "return [\n    y, x]"),
    (6, None),
]


@pytest.mark.parametrize(("line", "code"), LINES)
def test_by_line(line: int, code: str | None) -> None:
    program = program_of(CODE)
    tree = tree_at(program, Place(2, None, line, ""))
    found = tree.statement(Place(2, None, line, ""))
    if code == "f":
        assert type(found).__name__ == "FunctionDef"
    else:
        assert (None if found is None else tree.code(found)) == code


def test_by_span() -> None:
    program = program_of(CODE)
    place = spot(program, "z = 2")
    tree = tree_at(program, place)
    found = tree.statement(place)
    assert found is not None and tree.code(found).strip() == "z = 2"


@pytest.mark.parametrize(("code", "indent"), [("y = 1", 10), ("z = 2", 17)])
def test_by_column(code: str, indent: int) -> None:
    """Of a place without a span its text and column tell which statement of the line is meant."""
    program = program_of(CODE)
    place = Place(2, None, 6, code, indent=indent)
    found = tree_at(program, place).statement(place)
    assert found is not None and tree_at(program, place).code(found).strip(" ;") == code
    node = program.statement_at(place)
    assert node is not None and ast.unparse(node) == code


def test_columns_are_characters() -> None:
    program = program_of("größe = 'ü'; x = f(größe)\n")
    place = spot(program, "f(größe)")
    tree = tree_at(program, place)
    assert place.span is not None
    assert [tree.code(n) for n in tree.at(place)] == ["f(größe)"]


def test_a_tuple_with_its_parentheses() -> None:
    program = program_of("x = (a, b)\n")
    tree = tree_at(program, at(program, "x ="))
    assert len(tree.at(replace(at(program, "x ="), span=Span(1, 4, 1, 10)))) == 1


def test_a_place_of_a_node_leads_back_to_it() -> None:
    program = program_of(CODE)
    tree = tree_at(program, at(program, "x ="))
    for statement in tree.statements:
        assert tree.statement(tree.place(statement)) is statement


def test_what_does_not_parse() -> None:
    program = program_of("def (:\n")
    for tree in (tree_of(program, program.cells[-1]), tree_at(program, Place(9, None, 1, ""))):
        assert not tree.parsed and not tree.statements
    assert tree_of(program_of(""), program_of("").cells[-1]).parsed


@pytest.mark.parametrize(
    ("left", "right"),
    [("d['k']", 'd["k"]'), ("f( a,b )", "f(a, b)"), ("(x)", "x"), ("x[\n0]", "x[0]")],
)
def test_layout_does_not_matter(left: str, right: str) -> None:
    assert normal(left) == normal(right)


def test_no_expression() -> None:
    assert normal("x = 1") is None
