"""Whether the program itself turned recording off where values left the graph, or a library did;
and whether it meant these values, or only looked at them."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from itertools import takewhile
from types import CodeType

import torch

from ...inspect.facts.memoization import remembered
from ...inspect.facts.mode_of_library import mode_around
from ...model import Place
from ...program import Program, Source, called_name, is_installed, last_name
from ...program_index import index_of
from ..observe.call_sites import CallFrame
from ..observe.code_positions import CodePosition, line_of

_MODES = ("no_grad", "inference_mode", "set_grad_enabled", "_set_grad_enabled")
_APPLIED = torch.no_grad.__call__.__code__.co_filename
_TORCH = os.path.join(os.path.dirname(torch.__file__), "")
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


def by_library(
    stack: Sequence[tuple[CodeType, int]], steps: Sequence[CallFrame]
) -> tuple[Place, int] | None:
    """The line of an installed package that turned recording off for what ran with this stack, and
    how many of the user's frames it had called back by then."""
    own, inner = {step.code for step in steps}, 0
    for code, instruction in stack:
        if code in own:
            inner += 1
            continue
        if code.co_filename == _APPLIED:
            return None  # a switch applied to a function, by none of its own lines
        line = line_of(code, instruction)
        kind, place = mode_around(code.co_filename, line, code.co_name, {})
        if place is not None:
            return None if kind == "enable_grad" else (place, inner)
    return None


def called_directly(stack: Sequence[tuple[CodeType, int]], steps: Sequence[CallFrame]) -> int:
    """How many of the user's frames, from the innermost on, no package but torch came between: what
    a package turned off, outside of them, holds for all of these."""
    own = {step.code for step in steps}
    inner = takewhile(lambda code: code in own or not _is_foreign(code), (c for c, _ in stack))
    return sum(code in own for code in inner)


def _is_foreign(code: CodeType) -> bool:
    return is_installed(code.co_filename) and not code.co_filename.startswith(_TORCH)


def is_only_shown(ran: CodePosition | None, program: Program) -> bool:
    """Whether a statement computes what the text only shows: `print(net(x))`, `score = test()`.

    What a loss reads of it all the same was kept by an object behind the program's back."""
    statement = None if ran is None else ran.statement
    if isinstance(statement, ast.Expr):
        return called_name(statement.value) == "print"
    if not isinstance(statement, ast.Assign):
        return False
    names = {n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    plain = all(isinstance(t, (ast.Name, ast.Tuple)) for t in statement.targets)
    reads = index_of(program).nodes(ast.Name, naming=tuple(names))
    used = ((source, n) for source, n in reads if isinstance(n.ctx, ast.Load) and n.id in names)
    return plain and all(_is_shown(node, source) for source, node in used)


def recorded_within(lines: Sequence[CodePosition | None], program: Program) -> int:
    """How many of these lines, the innermost first, only their callers kept from being recorded."""
    return sum(1 for _ in takewhile(lambda line: not is_by_program((line,), program), lines))


def is_in_memory(lines: Sequence[CodePosition | None], program: Program) -> bool:
    """Whether these lines, the innermost first, have a value computed once and handed out from then
    on: `if self.adj is None: self.adj = …`."""
    places = [line.place(whole=False) for line in reversed(lines) if line is not None]
    return remembered(program, (*places,)) is not None


def _is_shown(node: ast.Name, source: Source) -> bool:
    for around in source.around(node):
        if isinstance(around, ast.stmt):
            return isinstance(around, ast.Expr) and called_name(around.value) == "print"
        if isinstance(around, (ast.Compare, ast.FormattedValue)):
            return True
    return False
