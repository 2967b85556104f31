"""What takes back that a statement switched something: the same statement with the other flag, or
with the method that is paired with the one called."""

from __future__ import annotations

import libcst as cst

from ...program import Program
from ...program_index import index_of
from ..engine.cst_tools import called_name, called_on, dotted, make, positional, walk
from ..engine.tree import Statement, Tree

_LISTS = ("parameters", "named_parameters", "modules", "named_modules", "children")


def whole_loop(tree: Tree, own: Statement) -> Statement:
    """The loop over parameters or layers around `p.requires_grad = False`, or around one that does
    nothing else."""
    found = own
    for loop in tree.loops(own):
        alone = tree.siblings(found)[0] == [found]
        if not isinstance(loop, cst.For) or not (alone or called_on(loop.iter, *_LISTS)):
            break
        found = loop
    return found


def undone(program: Program, tree: Tree, own: Statement, method: str) -> Statement | None:
    """`D.requires_grad_(True)` for `D.requires_grad_(False)` and for `freeze(D)`; the loop that
    sets the flags; the call of `method`, where one is paired with the one called."""
    calls = [n for n in walk(own) if isinstance(n, cst.Expr) and isinstance(n.value, cst.Call)]
    call = calls[0].value if len(calls) == 1 else None
    if method and isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute):
        return _replaced(own, call.func.attr, cst.Name(method))
    flags = [n for n in walk(own) if isinstance(n, cst.Name) and n.value == "False"]
    if len(flags) == 1:
        return _replaced(own, flags[0], cst.Name("True"))
    if not isinstance(own, cst.Expr) or not isinstance(call, cst.Call):
        return None
    name, given = called_name(call), positional(call)
    if any(index_of(program).defined(f"un{name}", tree.source)):
        return cst.Expr(call.with_changes(func=cst.Name(f"un{name}")))
    if len(given) != 1 or dotted(given[0].value) is None:
        return None
    return make("{x}.requires_grad_(True)", x=given[0].value)


def _replaced(own: Statement, old: cst.CSTNode, new: cst.Name) -> Statement | None:
    made = own.deep_replace(old, new)
    if isinstance(made, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
        return made
    return None
