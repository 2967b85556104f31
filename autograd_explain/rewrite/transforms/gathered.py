"""What an object has gathered of several calls, computed of one call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from ...model import Edits, Place
from ...program import Program
from ..analysis.effects import bound_in
from ..engine.cst_tools import called_on, expression, head, make, repeatable, same, walk
from ..engine.draft import Draft
from ..engine.edits import then
from ..engine.imports import torch_at
from ..engine.tree import Statement, Tree, position, statement_at

_TAKEN = (cst.Assign, cst.Return, cst.AugAssign)


def objects_called(program: Program, places: Sequence[Place]) -> Edits | None:
    """`object_called` at each of the places at which that can be done."""
    edits = None
    for place in places:
        first = edits is None
        more = (
            object_called(program, place) if first else then(program, edits, object_called, place)
        )
        edits = more or edits
    return edits


def object_called(program: Program, place: Place) -> Edits | None:
    """`m.update(p, y)`, then `m.compute()` in the same block -> `m(p, y)`, which gives the value
    of these alone.  Of a loop behind which `m.compute()` stands, what each round gives `m` is
    joined for the one call."""
    tree, own = statement_at(program, place)
    call, owner = getattr(own, "value", None), called_on(own)
    if own is None or not isinstance(call, cst.Call) or not call.args:
        return None
    if owner is not None and repeatable(owner):
        for node in _computed_behind(tree, own, owner):
            if _given_more(tree, own, call.func, node):
                return None  # it gathers several
            return Draft(tree).remove(own).replace(node, call.with_changes(func=owner)).edits()
    return _joined(program, tree, own, call, call.func if owner is None else owner)


def _joined(
    program: Program, tree: Tree, own: Statement, call: cst.Call, owner: cst.BaseExpression
) -> Edits | None:
    """`for …: m.update(p, y)`, then `m.compute()` -> `for …: given.append((p, y))`, then
    `m(*(torch.cat(each) for each in zip(*given)))`; what is given alone may be single numbers, as
    losses are."""
    torch, loop = torch_at(program, tree.place(own)), tree.outer(own)
    plain = all(arg.keyword is None and not arg.star for arg in call.args)
    if not isinstance(loop, cst.For) or torch is None or not plain or not repeatable(owner):
        return None
    bound = bound_in(own)
    names = (n.value for n in walk(tree.scope_of(own)) if isinstance(n, cst.Name))
    if sum(name in bound for name in names) > len(bound):
        return None  # what a round gives is read, too
    values: cst.BaseExpression = cst.Tuple([cst.Element(arg.value) for arg in call.args])
    whole = f"{{m}}(*({torch}.cat(each) for each in zip(*given)))"
    if len(call.args) == 1:
        values = call.args[0].value
        whole = f"{{m}}({torch}.cat([*map({torch}.atleast_1d, given)]))"
    for node in _computed_behind(tree, loop, owner):
        draft = Draft(tree).before(loop, [make("given = []")])
        draft.instead(own, [make("given.append({values})", values=values)])
        return draft.replace(node, expression(whole, m=owner)).edits()
    return None


def _computed_behind(tree: Tree, own: Statement, owner: cst.BaseExpression) -> Iterator[cst.Call]:
    """`m.compute()` in a statement behind one in its block that goes on with the result."""
    inside, at = tree.siblings(own)
    for node in (n for other in inside[at + 1 :] for n in head(other)):
        again = called_on(node) if isinstance(node, cst.Call) and not node.args else None
        if again is not None and same(tree, again, tree.code(owner)):
            if isinstance(tree.statement_of(node), _TAKEN):
                assert isinstance(node, cst.Call)
                yield node


def _given_more(tree: Tree, own: Statement, method: cst.CSTNode, until: cst.CSTNode) -> bool:
    """Whether another statement of the block calls the same method up to `until`."""
    inside, _ = tree.siblings(own)
    statement = tree.statement_of(until)
    last = len(inside) if statement is None else position(inside, statement)
    calls = (getattr(s, "value", None) for s in inside[:last] if s is not own)
    code = tree.code(method)
    return any(same(tree, c.func, code) for c in calls if isinstance(c, cst.Call))
