"""The result under the name of the buffer."""

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits, Fix, Propose, at_place, by_table
from autograd_explain.rewrite.analysis.effects import is_own_variable
from autograd_explain.rewrite.analysis.inplace_writes import InplaceCall, inplace_calls
from autograd_explain.rewrite.engine.cst_tools import (
    keyword,
    make,
    method_name,
    named,
    named_targets,
    walk,
)
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import Statement, Tree, statement_at
from autograd_explain.rewrite.transforms.out_of_place import out_of_place

from .diagnose import Details

_DIFFERENTIATES = frozenset({"backward", "grad"})


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
    made = [s for s in own if name in named_targets(s)]
    if len(made) != 1 or any(any(named(c.value, name)) for c in writes.values()):
        return None
    loops = [loop for s in writes for loop in tree.loops(s) if not tree.inside(made[0], loop)]
    if any(method_name(n) in _DIFFERENTIATES for loop in loops for n in walk(loop)):
        return None
    end = max((s.end_line, s.end_column) for s in map(tree.span, (*writes, *loops)))
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


propose: Propose[Details] = by_table(
    Fix("assign", at_place(out_of_place), when=lambda d: d.alone and d.plain),
    Fix("into_part", at_place(_into_parts), when=lambda d: d.alone and not d.plain),
    Fix("assign", lambda s: s.without("out"), when=lambda d: not d.alone),
)
