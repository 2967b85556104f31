"""What an object has gathered of several calls, computed of one call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from ...model import Edits, Place
from ...program import Program
from ..engine.cst_tools import called_on, head, repeatable, same
from ..engine.draft import Draft
from ..engine.edits import then
from ..engine.tree import Statement, Tree, statement_at

_TAKEN = (cst.Assign, cst.Return, cst.AugAssign)


def objects_called(program: Program, places: Sequence[Place]) -> Edits | None:
    """`object_called` at each of the places at which that can be done."""
    edits: Edits = ()
    for place in places:
        edits = then(program, edits, object_called, place) or edits
    return edits or None


def object_called(program: Program, place: Place) -> Edits | None:
    """`m.update(p, y)`, then `m.compute()` in the same block -> `m(p, y)`, which gives the value
    of these alone."""
    tree, own = statement_at(program, place)
    call, owner = getattr(own, "value", None), called_on(own)
    if own is None or owner is None or not isinstance(call, cst.Call) or not call.args:
        return None
    for node in _computed_behind(tree, own, owner) if repeatable(owner) else ():
        if _given_more(tree, own, call.func, node):
            return None  # it gathers several
        return Draft(tree).remove(own).replace(node, call.with_changes(func=owner)).edits()
    return None


def _computed_behind(tree: Tree, own: Statement, owner: cst.BaseExpression) -> Iterator[cst.Call]:
    """`m.compute()` in a statement behind one in its block that goes on with the result."""
    inside, at = tree.siblings(own)
    for node in (n for other in inside[at + 1 :] for n in head(other)):
        again = called_on(node) if isinstance(node, cst.Call) and not node.args else None
        if again is not None and same(tree, again, tree.code(owner)):
            if isinstance(node, cst.Call) and isinstance(tree.statement_of(node), _TAKEN):
                yield node


def _given_more(tree: Tree, own: Statement, method: cst.CSTNode, until: cst.CSTNode) -> bool:
    """Whether another statement of the block calls the same method up to `until`."""
    inside, _ = tree.siblings(own)
    statement = tree.statement_of(until)
    last = len(inside) if statement is None else inside.index(statement)
    calls = (getattr(s, "value", None) for s in inside[:last] if s is not own)
    code = tree.code(method)
    return any(same(tree, c.func, code) for c in calls if isinstance(c, cst.Call))
