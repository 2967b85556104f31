"""The function that was handed a gradient, and what it calls it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from autograd_explain.arguments import positional_parameters
from autograd_explain.inspect.dataflow.reaching_definitions import head_of
from autograd_explain.model import Place, Span
from autograd_explain.program import Program, Source, own_nodes

FunctionNode = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True)
class Handed:
    """`incoming` is the parameter that is written, `alias` the expression `incoming` in
    `alias = incoming` where it is written under another name."""

    source: Source
    function: FunctionNode
    incoming: str
    alias: ast.expr | None = None


def handed_at(program: Program, place: Place, target: str) -> Handed | None:
    """What was written at a place; None where that is no plain argument of the function."""
    source = program.source_at(place)
    name = head_of(target)
    function = None if source is None else _around(source, place, name)
    if source is None or function is None:
        return None
    given = positional_parameters(function)
    if name in given:
        return Handed(source, function, name)
    for node in own_nodes(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            targets = [t.id for t in node.targets if isinstance(t, ast.Name)]
            if name in targets and node.value.id in given:
                return Handed(source, function, node.value.id, node.value)
    return None


def _around(source: Source, place: Place, name: str) -> FunctionNode | None:
    """The innermost function around a line; of a `lambda`, whose expression is not known, the only
    one there with a parameter of this name."""
    around = [
        node
        for node in source.nodes
        if isinstance(node, FunctionNode) and _is_on(place.line, source.span(node))
    ]
    if place.function == "<lambda>":
        found = [
            n for n in around if isinstance(n, ast.Lambda) and name in positional_parameters(n)
        ]
        return found[0] if len(found) == 1 else None
    functions = (n for n in around if isinstance(n, ast.FunctionDef))
    return max(functions, key=lambda n: n.lineno, default=None)


def _is_on(line: int, span: Span | None) -> bool:
    return span is not None and span.line <= line <= span.end_line
