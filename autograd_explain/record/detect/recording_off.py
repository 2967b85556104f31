"""Whether the program itself turned recording off where values left the graph, or a library did."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ...program import Program, Source, last_name
from ...program_index import index_of
from ..observe.code_positions import CodePosition

_MODES = ("no_grad", "inference_mode", "set_grad_enabled", "_set_grad_enabled")
_BLOCKS = (ast.With, ast.AsyncWith)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def is_by_program(lines: Sequence[CodePosition | None], program: Program) -> bool:
    """Whether one of these lines stands in a block or a function that the program runs without
    recording, or may do: what lasts longer than a block, or is handed on, counts everywhere."""
    if not lines or None in lines:
        return True
    return any(
        around is None or any(_is_inside(line, source, around) for line in lines)
        for source, around in _turned_off(program)
    )


def _turned_off(program: Program) -> Iterator[tuple[Source, ast.AST | None]]:
    """The blocks and functions that name such a mode; None where neither holds it."""
    for source, node in index_of(program).nodes(ast.expr, naming=_MODES):
        if last_name(node) in _MODES:
            yield source, next((n for n in source.around(node) if _holds(n, node)), None)


def _holds(around: ast.AST, mode: ast.AST) -> bool:
    if isinstance(around, _BLOCKS):
        heads: list[ast.expr] = [item.context_expr for item in around.items]
    else:
        heads = around.decorator_list if isinstance(around, _FUNCTIONS) else []
    return any(node is mode for head in heads for node in ast.walk(head))


def _is_inside(line: CodePosition | None, source: Source, around: ast.AST) -> bool:
    if line is None or line.source is not source:
        return False
    return getattr(around, "lineno", 0) <= line.line <= (getattr(around, "end_lineno", 0) or 0)
