"""Calls and single statements changed: a flag, a method instead of another, one of what a decorator
wraps, one that stands for several, a value or number instead of another."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

import libcst as cst

from ...model import Edits, Place
from ...program import Program, called_name
from ..engine.cst_tools import called_on, head, is_number, method, repeatable, same, targets
from ..engine.draft import Draft, Drafts
from ..engine.edits import then
from ..engine.tree import Tree, statement_at, tree_at
from .spot import Spot
from .uncut import Patch, apply_all, code_of, replacement

if TYPE_CHECKING:
    from ...inspect.facts.dead_value import Unread
    from ...inspect.facts.losing_call import Undecorated


def asked_for_gradient(program: Program, place: Place | None) -> Edits | None:
    """`torch.ones(2)` -> `torch.ones(2, requires_grad=True)`, `torch.from_numpy(a)` -> the same and
    `.requires_grad_()`; None for what is no such constructor."""
    name = called_name(program.expression_at(place))
    if name in ("as_tensor", "from_numpy"):
        return Spot(program, place).called("requires_grad_")
    return Spot(program, place).given("requires_grad", "True") if name in _TAKE_FLAG else None


_TAKE_FLAG = frozenset(
    "tensor zeros ones full empty rand randn randint linspace logspace arange eye normal "
    "zeros_like ones_like full_like rand_like randn_like empty_like".split()
)


def switched_before(program: Program, place: Place | None, module: str) -> Edits | None:
    """A module that is in eval mode put into training mode and back before a statement, so that it
    empties what it keeps."""
    return Spot(program, place).before("{module}.train()\n{module}.eval()\n", module=module)


def read_instead(program: Program, values: Sequence[Unread]) -> Edits | None:
    """`model(pos)` -> `model(moved)`: each value where another is read in its place, which has to
    come behind what makes it."""
    order = (((p.cell or 0, p.line) for p in (value.made, value.read)) for value in values)
    known = all(made < read for made, read in order)
    return apply_all(Spot(program, v.read).with_code(v.name) for v in values) if known else None


def detached_instead(program: Program, place: Place) -> Edits | None:
    """`x.requires_grad = False`, `x.detach_()` -> `x = x.detach()`; within an expression
    `x.detach()`.  The place is that of `x`."""
    tree = tree_at(program, place)
    node = tree.node(place)
    call = tree.around(node, cst.Call)
    if node and call and called_on(call) is node and not isinstance(tree.parents[call], cst.Expr):
        return Draft(tree).replace(call, method(node, "detach()")).edits()
    plain = isinstance(node, (cst.Name, cst.Attribute))
    return Spot(program, place).instead("{x} = {x}.detach()") if plain else None


def non_reentrant(program: Program, places: Iterable[Place]) -> Edits | None:
    """`use_reentrant=False` at each of these places: a checkpoint, the `True` of such an option,
    or a library's switch."""
    return apply_all(_turned_off(Spot(program, p)) for p in places)


def _turned_off(spot: Spot) -> list[Patch]:
    if isinstance(spot.node, ast.Constant):
        return spot.with_code("False")
    method = spot.call is not None and isinstance(spot.call.func, ast.Attribute)
    if method and called_name(spot.call).endswith("_enable"):
        return spot.with_argument("gradient_checkpointing_kwargs", '{"use_reentrant": False}')
    return spot.with_argument("use_reentrant", "False")


def wrapped_instead(program: Program, calls: Sequence[Undecorated]) -> Edits | None:
    """`model.encode(x)` -> `model.encode.__wrapped__(model, x)`, at every call of the kind."""
    return apply_all(_what_is_wrapped(program, call) for call in calls)


def _what_is_wrapped(program: Program, call: Undecorated) -> list[Patch]:
    node = program.expression_at(call.place)
    if not isinstance(node, ast.Call):
        return []
    owner: ast.expr | None = node.func if call.method else getattr(node.func, "value", None)
    owner = None if call.alone else owner
    if owner is None and not call.alone:
        return []
    given = [*(() if owner is None else (owner,)), *node.args, *node.keywords]
    inner = ", ".join(code_of(program, call.place, g) for g in given)
    method = f".{call.method}" * bool(call.method) + ".__wrapped__" * call.levels
    function = code_of(program, call.place, node.func)
    return replacement(program, call.place, f"{function}{method}({inner})")


def objects_called(program: Program, places: Sequence[Place]) -> Edits | None:
    """`object_called` at each of the places at which that can be done."""
    edits: Edits = ()
    for place in places:
        edits = then(program, edits, object_called, place) or edits
    return edits or None


def object_called(program: Program, place: Place) -> Edits | None:
    """`m.update(p, y)`, then `m.compute()` in a statement of the same block that goes on with the
    result -> `m(p, y)`, which gives the value of these alone."""
    tree, own = statement_at(program, place)
    call, owner = getattr(own, "value", None), called_on(own)
    if owner is None or not isinstance(call, cst.Call) or not call.args or not repeatable(owner):
        return None
    inside, at = tree.siblings(own)
    behind = (n for s in inside[at + 1 :] if isinstance(s, _TAKEN) for n in head(s))
    asked = (n for n in behind if isinstance(n, cst.Call) and not n.args)
    node = next((n for n in asked if same(tree, called_on(n) or n, tree.code(owner))), None)
    until = None if node is None else tree.statement_of(node)
    calls = {s: getattr(getattr(s, "value", s), "func", s) for s in inside}
    before = takewhile(lambda s: s is not until, inside)
    if [s for s in before if same(tree, calls[s], tree.code(call.func))] != [own]:
        return None  # it gathers several
    return Draft(tree).remove(own).replace(node, call.with_changes(func=owner)).edits()


_TAKEN = (cst.Assign, cst.Return, cst.AugAssign)


def finite_fill(program: Program, place: Place) -> Edits | None:
    """`s.masked_fill(m, float("-inf"))` -> `s.masked_fill(m, -1e9)`, wherever the function around
    a place masks so, else wherever the program does: a row without anything left is 0 / 0 to a
    softmax."""
    (tree, own), drafts = statement_at(program, place), Drafts()
    if own is None:
        return None
    here = [node for node in _infinities(tree) if tree.scope_of(node) is tree.scope_of(own)]
    for other in [tree] if here else tree.namespace:
        for node in here or _infinities(other):
            drafts[other].replace(node, cst.parse_expression("-1e9"))
    return drafts.edits()


def _infinities(tree: Tree) -> Iterator[cst.BaseExpression]:
    """The expressions for minus infinity with which something is filled."""
    for node, parent in tree.parents.items():
        if not isinstance(node, cst.BaseExpression) or not is_number(node):
            continue
        text = tree.code(node).lower()
        item = isinstance(parent, cst.Assign) and isinstance(targets(parent)[0], cst.Subscript)
        if "inf" in text and "-" in text and (item or isinstance(parent, cst.Arg)):
            yield node
