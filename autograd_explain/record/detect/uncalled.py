"""Methods that a statement names and does not call: `loss.backward`.

torch sees nothing of it, so that the text alone tells: the watched cell's own statements, and those
of the functions that ran in it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from types import CodeType

from ...inspect.history import TraceEvent
from ...program import Program, Source, own_nodes
from ...program_index import functions_of, index_of

#: What is there for its effect alone.
_FOR_EFFECT = frozenset("backward step zero_grad requires_grad_ retain_grad detach_".split())


def uncalled(program: Program, cell: int | None, ran: Iterable[CodeType]) -> Iterator[TraceEvent]:
    """Each such statement; not the last one of a cell, which shows what it names."""
    if not any(_named(node) for _, node in index_of(program).nodes(ast.Expr)):
        return
    own = [s for s in index_of(program).runs if s.cell == cell]
    scopes: list[tuple[Source, ast.AST]] = [(source, source.tree) for source in own]
    for code in dict.fromkeys(ran):
        source = program.source_of(code)
        if source is not None:
            scopes += [(source, node) for node in functions_of(source.tree, code)]
    for source, scope in scopes:
        shown = scope.body[-1:] if isinstance(scope, ast.Module) else []
        for node in own_nodes(scope):
            named = None if node in shown else _named(node)
            if named is not None:
                place = source.place(named.lineno, getattr(scope, "name", None), named)
                yield TraceEvent(0, place, named.attr, operands=(ast.unparse(named.value),))


def _named(node: ast.AST) -> ast.Attribute | None:
    """The method that a statement does nothing but name."""
    value = node.value if isinstance(node, ast.Expr) else None
    return value if isinstance(value, ast.Attribute) and value.attr in _FOR_EFFECT else None
