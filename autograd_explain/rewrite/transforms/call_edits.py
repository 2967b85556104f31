"""Calls and single statements changed: a flag, a method instead of another, a call made sooner."""

from __future__ import annotations

import libcst as cst

from ...model import Edits, Place
from ...program import Program, called_name
from ..engine.cst_tools import called_on, method
from ..engine.draft import Draft
from ..engine.tree import statement_at, tree_at
from .move_statement import move_before
from .spot import Spot
from .uncut import node_at


def asked_for_gradient(program: Program, place: Place | None) -> Edits | None:
    """`torch.ones(2)` -> `torch.ones(2, requires_grad=True)`, `torch.from_numpy(a)` -> the same and
    `.requires_grad_()`; None for what is no such constructor."""
    name = called_name(node_at(program, place))
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


def called_sooner(program: Program, place: Place | None, *goals: Place | None) -> Edits | None:
    """A statement that gives no name a value put before the first of others that it can go before.

    It may pass statements that use the same objects, as where those fail because the call comes too
    late; not one that binds a name which it reads.
    """
    tree, moved = statement_at(program, place)
    if not isinstance(moved, (cst.Expr, cst.AugAssign, cst.With, cst.For, cst.If)):
        return None
    others = [s for goal in goals if tree_at(program, goal) is tree and (s := tree.statement(goal))]
    above = sorted((s for s in others if tree.is_behind(moved, s)), key=tree.start)
    moves = (move_before(program, place, tree.place(s), checked=False) for s in above)
    return next((edits for edits in moves if edits), None)


def detached_instead(program: Program, place: Place) -> Edits | None:
    """`x.requires_grad = False`, `x.detach_()` -> `x = x.detach()`; within an expression
    `x.detach()`.  The place is that of `x`."""
    tree = tree_at(program, place)
    node = tree.node(place)
    call = tree.around(node, cst.Call)
    if node is None:
        return None
    if call and called_on(call) is node and not isinstance(tree.parents[call], cst.Expr):
        return Draft(tree).replace(call, method(node, "detach()")).edits()
    plain = isinstance(node, (cst.Name, cst.Attribute))
    return Spot(program, place).instead("{x} = {x}.detach()") if plain else None
