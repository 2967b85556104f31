"""`loss.requires_grad = True` before `loss.backward()`, which only silences a cut graph."""

from __future__ import annotations

import ast

from ...model import Place, Span
from ...program import Program, Source, blocks, called_name
from .uncut import Patch


def flag_of_root(program: Program, place: Place | None) -> list[Patch]:
    """The statements taken out that make the loss of the backward on this line a leaf that requires
    grad, where the same block computes that loss: a result in the graph needs no flag."""
    source = None if place is None else program.source_at(place)
    if source is None or place is None:
        return []
    for block in (b for node in ast.walk(source.tree) for b in blocks(node)):
        for i, statement in enumerate(block):
            loss = _differentiated(statement)
            if loss and statement.lineno + source.offset == place.line:
                earlier = block[:i]
                if any(_computes(s, loss) for s in earlier):
                    flags = [s for s in earlier if _is_flag(s, loss)]
                    return [p for s in flags for p in without_lines(source, s)]
    return []


def _differentiated(statement: ast.stmt) -> str:
    """`loss` of `loss.backward()`"""
    call = statement.value if isinstance(statement, ast.Expr) else None
    function = call.func if isinstance(call, ast.Call) else None
    if isinstance(function, ast.Attribute) and function.attr == "backward":
        return ast.unparse(function.value)
    return ""


def _computes(statement: ast.stmt, name: str) -> bool:
    return (
        isinstance(statement, ast.Assign)
        and [ast.unparse(t) for t in statement.targets] == [name]
        and isinstance(statement.value, (ast.Call, ast.BinOp))
        and called_name(statement.value)
        not in ("Variable", "tensor", "as_tensor", "requires_grad_")
    )


def _is_flag(statement: ast.stmt, name: str) -> bool:
    """`loss.requires_grad = True`, `loss.requires_grad_()`, also where `if not loss.requires_grad`
    stands before it."""
    if isinstance(statement, ast.If):
        asked = ast.unparse(statement.test) == f"not {name}.requires_grad"
        return asked and not statement.orelse and all(_is_flag(s, name) for s in statement.body)
    text = ast.unparse(statement)
    return text in (
        f"{name}.requires_grad = True",
        *(f"{name}.requires_grad_({a})" for a in ("", "True")),
    )


def without_lines(source: Source, statement: ast.stmt) -> list[Patch]:
    """The statement's lines gone; [] where something else stands on them."""
    span = source.span(statement)
    if span.end_line >= len(source.lines):
        return []
    before = source.lines[span.line - 1][: span.column]
    behind = source.lines[span.end_line - 1][span.end_column :].strip()
    if before.strip() or (behind and not behind.startswith("#")):
        return []
    return [Patch(source, Span(span.line, 0, span.end_line + 1, 0), "")]
