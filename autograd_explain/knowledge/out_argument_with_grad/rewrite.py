"""The result under the name of the buffer."""

import ast
from collections.abc import Iterator

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits, Fix, Propose, at_place, by_table
from autograd_explain.rewrite.analysis.effects import is_own_variable, local_names
from autograd_explain.rewrite.analysis.inplace_writes import InplaceCall, inplace_calls
from autograd_explain.rewrite.engine.cst_tools import (
    keyword,
    make,
    method_name,
    named,
    single_targets,
    walk,
)
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import Statement, Tree, statement_at
from autograd_explain.rewrite.transforms.out_of_place import out_of_place

from .diagnose import Details

_DIFFERENTIATES = frozenset({"backward", "grad"})


def _as_local(program: Program, place: Place) -> Edits | None:
    """`torch.mul(x, w, out=buffer)` -> `buffer = torch.mul(x, w)` in a function that alone uses the
    buffer, and each time behind this statement, so that a variable of its own does as well."""
    tree, statement = statement_at(program, place)
    source, call = program.source_at(place), _written(tree, statement)
    if statement is None or source is None or call is None or not isinstance(call.target, cst.Name):
        return None
    name, scope = call.target.value, tree.scope_of(statement)
    function = source.function_at(place)
    if not isinstance(scope, cst.FunctionDef) or name in local_names(scope) or function is None:
        return None
    block, at = tree.siblings(statement)
    uses = (n for n in named(scope, name) if not tree.inside(n, statement))
    behind = all(any(tree.inside(n, s) for s in block[at + 1 :]) for n in uses)
    if not behind or any(named(call.value, name)) or len([*named(statement, name)]) > 1:
        return None
    own = set(map(id, ast.walk(function)))
    nodes = index_of(program).nodes(ast.AST, naming=(name,))
    if any(_reads(n, name) for _, n in nodes if id(n) not in own):
        return None
    return Draft(tree).instead(statement, [make("{x} = {v}", x=call.target, v=call.value)]).edits()


def _reads(node: ast.AST, name: str) -> bool:
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return name in node.names
    if isinstance(node, ast.Attribute):
        return node.attr == name
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


def _into_parts(program: Program, place: Place) -> Edits | None:
    """`torch.mul(x, w, out=rows[i])` -> `rows[i] = torch.mul(x, w)`, at each part of the buffer.

    Such a write is recorded.  None unless the buffer was made for this one graph, and is read when
    all of it is written: a part written behind a read may be needed in backward as it was.
    """
    tree, statement = statement_at(program, place)
    first = _written(tree, statement)
    name = None if first is None else _part_of(first)
    if statement is None or name is None:
        return None
    scope = tree.scope_of(statement)
    if isinstance(scope, cst.FunctionDef) and not is_own_variable(tree, statement, name):
        return None
    own = [s for s in tree.statements if tree.scope_of(s) is scope]
    calls = {s: c for s in own if (c := _written(tree, s)) is not None}
    writes = {s: c for s, c in calls.items() if _part_of(c) == name}
    made = [s for s in own if any(t.value == name for t in _names(s))]
    if len(made) != 1 or any(any(named(c.value, name)) for c in writes.values()):
        return None
    loops = [loop for s in writes for loop in tree.loops(s) if not tree.inside(made[0], loop)]
    if any(method_name(n) in _DIFFERENTIATES for loop in loops for n in walk(loop)):
        return None
    spans = [tree.span(n) for n in (*writes, *loops)]
    end = max((s.end_line, s.end_column) for s in spans)
    others = [n for n in named(scope, name) if not any(tree.inside(n, s) for s in (*made, *writes))]
    if any(tree.start(n) < end for n in others):
        return None
    draft = Draft(tree)
    for write, call in writes.items():
        draft.instead(write, [make("{x} = {v}", x=call.target, v=call.value)])
    return draft.edits()


def _written(tree: Tree, statement: Statement | None) -> InplaceCall | None:
    """The call with `out=` that a statement consists of."""
    if not isinstance(statement, cst.Expr):
        return None
    calls = inplace_calls(tree, statement)
    whole = [c for c in calls if c.node is statement.value and keyword(c.node, "out") is not None]
    return whole[0] if len(calls) == 1 and whole else None


def _part_of(call: InplaceCall) -> str | None:
    part = call.target
    whole = part.value if isinstance(part, cst.Subscript) else None
    return whole.value if isinstance(whole, cst.Name) else None


def _names(statement: Statement) -> Iterator[cst.Name]:
    return (t for t in single_targets(statement) if isinstance(t, cst.Name))


propose: Propose[Details] = by_table(
    Fix("assign", at_place(out_of_place), when=lambda d: d.alone and d.plain),
    Fix("assign", at_place(_as_local), when=lambda d: d.alone and d.plain),
    Fix("into_part", at_place(_into_parts), when=lambda d: d.alone and not d.plain),
    Fix("assign", lambda s: s.without("out"), when=lambda d: not d.alone),
)
