"""What was computed before a loop that computes the same anew, to compare the two (`old` of
`ratio = (new - old).exp()`): inside the loop it would always equal the new one."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

from autograd_explain.model import Place
from autograd_explain.program import Program

_DEPTH = 4  #: names behind names that are looked through


@dataclass(frozen=True)
class Compared:
    """`values` are the expressions to compare with, `others` the statements that have to move."""

    values: tuple[Place, ...]
    others: tuple[Place, ...]


def compared(program: Program, old: Sequence[Place], use: Place | None) -> Compared | None:
    """What the loop around `use` reads of the old statements and computes as well; None where
    there is nothing of the kind, or where the others are computed from it."""
    source, reader = program.source_at(use), program.statement_at(use)
    around = () if source is None or reader is None else source.around(reader)
    loop = next((n for n in reversed([*around]) if isinstance(n, (ast.For, ast.While))), None)
    if source is None or loop is None:
        return None
    inside = [n for n in ast.walk(loop) if isinstance(n, ast.Assign)]
    before = {place: program.statement_at(place) for place in old}
    first = _values(s for s in before.values() if isinstance(s, ast.Assign))
    again = _values(inside)
    texts = {_spelled(n, again) for n in ast.walk(loop) if isinstance(n, (ast.Call, ast.BinOp))}
    same = {n for n, v in first.items() if n not in again and _spelled(v, first) in texts}
    meant = same & _read(loop)
    others = {p: s for p, s in before.items() if s is not None and not _gives(s, same)}
    if not meant or any(_read(s) & same for s in others.values()):
        return None
    found = [(p, s) for p, s in before.items() if isinstance(s, ast.Assign) and _gives(s, meant)]
    values = (_at(program, p, s.value) for p, s in found)
    return Compared(tuple(v for v in values if v is not None), tuple(others))


def _values(statements: Iterable[ast.Assign]) -> Mapping[str, ast.expr]:
    return {
        s.targets[0].id: s.value
        for s in statements
        if len(s.targets) == 1 and isinstance(s.targets[0], ast.Name)
    }


def _gives(statement: ast.stmt, names: set[str]) -> bool:
    return isinstance(statement, ast.Assign) and bool(_values([statement]).keys() & names)


def _read(node: ast.AST) -> set[str]:
    names = (n for n in ast.walk(node) if isinstance(n, ast.Name))
    return {n.id for n in names if isinstance(n.ctx, ast.Load)}


def _spelled(value: ast.expr, known: Mapping[str, ast.expr], depth: int = _DEPTH) -> str:
    """The text of a value with those of the names in it written out."""

    class WrittenOut(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            inner = known.get(node.id) if depth else None
            if inner is None or inner is value:
                return node
            return ast.parse(f"({_spelled(inner, known, depth - 1)})", mode="eval").body

    return ast.unparse(WrittenOut().visit(deepcopy(value)))


def _at(program: Program, place: Place, node: ast.expr) -> Place | None:
    source = program.source_at(place)
    return None if source is None else source.place(node.lineno, place.function, node)
