"""The loss of a codebook that was taken of the straight-through value `z + (q - z).detach()`, which
passes gradient to `z` alone, instead of the codes `q` themselves."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ...model import Edits, Place
from ...program import Program, Source, own_nodes
from .uncut import Patch, apply_patches, node_at, passed_through, without_ending


@dataclass(frozen=True, eq=False)
class _Passed:
    """The statement `name = z + (q - z).detach()`."""

    source: Source
    scope: ast.AST
    statement: ast.Assign
    codes: str
    encoded: ast.expr
    name: str


def codes_in_loss(program: Program, place: Place) -> Edits | None:
    """`q` for the straight-through value where the function that makes it compares this with
    `z.detach()`.  None where no such loss is seen."""
    passed = _passed(program, place)
    compared = [] if passed is None else list(_compared(passed))
    return apply_patches(_named_apart(passed, compared)) if passed and compared else None


def _passed(program: Program, place: Place) -> _Passed | None:
    source, cut = program.source_at(place), node_at(program, place)
    total = None if source is None or cut is None else source.parents.get(cut)
    found = passed_through(total)
    statement = None if source is None or total is None else source.parents.get(total)
    if source is None or found is None or not isinstance(statement, ast.Assign):
        return None
    kept, other, difference = found
    codes, target = difference.left, statement.targets[0]
    if other is not cut or not isinstance(codes, ast.Name) or not isinstance(target, ast.Name):
        return None
    scope = source.function_around(statement) or source.tree
    return _Passed(source, scope, statement, codes.id, kept, target.id)


def _compared(passed: _Passed) -> Iterator[ast.Name]:
    """The readings of the name beside `z.detach()`: `mse_loss(s, z.detach())`, `s - z.detach()`."""
    for node in own_nodes(passed.scope):
        parts = node.args[:2] if isinstance(node, ast.Call) else []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            parts = [node.left, node.right]
        for part, other in zip(parts, reversed(parts), strict=True) if len(parts) == 2 else ():
            named = isinstance(part, ast.Name) and part.id == passed.name
            if isinstance(part, ast.Name) and named and part.lineno > passed.statement.lineno:
                ended = without_ending(other)
                if ended is not other and ast.dump(ended) == ast.dump(passed.encoded):
                    yield part


def _named_apart(passed: _Passed, compared: list[ast.Name]) -> list[Patch]:
    """The codes read there, under a name of their own where the statement takes theirs."""
    name, patches = passed.codes, list[Patch]()
    names = [n for n in own_nodes(passed.scope) if isinstance(n, ast.Name)]
    stores = [n for n in names if n.id == name and isinstance(n.ctx, ast.Store)]
    if any(n.lineno >= passed.statement.lineno for n in stores):
        wishes = (f"{name}_codes", *(f"{name}_codes_{i}" for i in range(2, 99)))
        name = next(wish for wish in wishes if wish not in {n.id for n in names})
        patches = _line_before(passed, f"{name} = {passed.codes}")
    spans = [passed.source.span(node) for node in compared]
    return [*patches, *(Patch(passed.source, span, name) for span in spans if span is not None)]


def _line_before(passed: _Passed, code: str) -> list[Patch]:
    span = passed.source.span(passed.statement)
    if span is None:
        return []
    indent = passed.source.text.split("\n")[span.line - 1][: span.column]
    return [Patch(passed.source, span.start, f"{code}\n{indent}")] if not indent.strip() else []
