"""Calls and single statements changed as text: an argument, a name, a line before or behind."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import partial

import libcst as cst

from ...model import Edits, Place
from ...program import Program, called_name
from ..analysis.effects import bound_in, effects, used_names
from ..engine.cst_tools import called_on, filled, keyword, method, without
from ..engine.draft import Draft
from ..engine.imports import torch_at
from ..engine.tree import Statement, Tree, statement_at, tree_at
from .move_statement import lifted
from .uncut import (
    Patch,
    apply_all,
    apply_patches,
    called,
    code_of,
    keyword_added,
    node_at,
    replacement,
)


def call_behind(program: Program, place: Place | None, name: str) -> Edits | None:
    """`x` -> `x.mean()`, `a + b` -> `(a + b).mean()`; `name` is written without brackets."""
    return apply_patches(called(program, place, name))


def expression_replaced(program: Program, place: Place | None, template: str) -> Edits | None:
    """Another expression for the one at the span.  In the template `{x}` is its text, `{torch}` the
    name of torch and `{owner}` what stands before its last dot; of a call `{owner}` is that of what
    is called, `{function}` what is called and `{arguments}` the rest, in brackets.  None where one
    of these is missing."""
    return expressions_replaced(program, (place,), template)


def expressions_replaced(
    program: Program, places: Iterable[Place | None], template: str
) -> Edits | None:
    """The same for several expressions; None where one of them has no such part."""
    return apply_all(filled_at(program, place, template) for place in places)


def filled_at(program: Program, place: Place | None, template: str) -> list[Patch]:
    """The patches of one of them."""
    node = node_at(program, place)
    if node is None or place is None:
        return []
    parts = {"x": code_of(program, place, node), "torch": torch_at(program, place) or ""}
    function = node.func if isinstance(node, ast.Call) else None
    if function is not None:
        parts["function"] = code_of(program, place, function)
        parts["arguments"] = parts["x"].partition(parts["function"])[2]
    named = node if function is None else function
    if isinstance(named, ast.Attribute):
        parts["owner"] = code_of(program, place, named.value)
    if not all(parts.get(part) for part in _PARTS if f"{{{part}}}" in template):
        return []
    return replacement(program, place, filled(template, **parts))


_PARTS = ("x", "torch", "function", "arguments", "owner")


def keyword_set(program: Program, place: Place | None, name: str, value: str) -> Edits | None:
    """`name=value` in the call at the span, added or changed; in the value `{torch}` is the name of
    torch, without which there is none."""
    torch = torch_at(program, place) if "{torch}" in value else ""
    value = value.replace("{torch}", torch or "")
    return None if torch is None else apply_patches(keyword_added(program, place, name, value))


def asked_for_gradient(program: Program, place: Place | None) -> Edits | None:
    """`torch.ones(2)` -> `torch.ones(2, requires_grad=True)`, `torch.from_numpy(a)` -> the same and
    `.requires_grad_()`; None for what is no such constructor."""
    name = called_name(node_at(program, place))
    if name in ("as_tensor", "from_numpy"):
        return call_behind(program, place, "requires_grad_")
    return keyword_set(program, place, "requires_grad", "True") if name in _TAKE_FLAG else None


_TAKE_FLAG = frozenset(
    "tensor zeros ones full empty rand randn randint linspace logspace arange eye normal "
    "zeros_like ones_like full_like rand_like randn_like empty_like".split()
)


def keyword_removed(program: Program, place: Place | None, name: str) -> Edits | None:
    """The call at the span without a keyword argument."""
    tree, call, gone = _keyword(program, place, name)
    return Draft(tree).replace(call, without(call, gone)).edits() if call and gone else None


def keyword_renamed(program: Program, place: Place | None, old: str, new: str) -> Edits | None:
    """Another name for a keyword argument of the call at the span."""
    tree, _, given = _keyword(program, place, old)
    return Draft(tree).replace(given and given.keyword, cst.Name(new)).edits()


def _keyword(
    program: Program, place: Place | None, name: str
) -> tuple[Tree, cst.Call | None, cst.Arg | None]:
    tree = tree_at(program, place)
    call = tree.call(place)
    return tree, call, None if call is None else keyword(call, name)


def line_put(
    program: Program, place: Place | None, code: str, *, put: Callable[..., Draft]
) -> Edits | None:
    """Statements put before the one at the place, behind it or instead of it."""
    tree, statement = statement_at(program, place)
    return put(Draft(tree), statement, code).edits()


line_before, line_behind = partial(line_put, put=Draft.before), partial(line_put, put=Draft.after)
statement_replaced = partial(line_put, put=Draft.instead)


def switched_before(program: Program, place: Place | None, module: str) -> Edits | None:
    """A module that is in eval mode put into training mode and back before a statement, so that it
    empties what it keeps."""
    return line_before(program, place, f"{module}.train()\n{module}.eval()\n") if module else None


def called_sooner(program: Program, place: Place | None, *goals: Place | None) -> Edits | None:
    """A statement that gives no name a value put before the first of others of its block, or in it.

    Unlike `move_before` it may pass statements that use the same objects, as where those fail
    because the call comes too late; not one that binds a name which it reads.  The blocks around it
    that the others stand outside of go with it.
    """
    tree, moved = statement_at(program, place)
    others = [s for goal in goals if tree_at(program, goal) is tree and (s := tree.statement(goal))]
    while isinstance(moved, (cst.Expr, cst.AugAssign, cst.With, cst.For, cst.If)):
        block = tree.block_of(moved)
        levels = [level for s in others if (level := lifted(tree, s, block)) not in (None, moved)]
        if levels:
            return _put_before(tree, moved, levels)
        moved = tree.outer(moved)
    return None


def _put_before(tree: Tree, moved: Statement, levels: list[Statement]) -> Edits | None:
    order, last = tree.siblings(moved)
    first = min(map(order.index, levels))
    own, passed = bound_in(moved), order[first:last]
    bound = {name for statement in passed for name in bound_in(statement)}
    used = {name for statement in passed for name in used_names(statement)}
    if last <= first or effects(moved).barrier or own & used or used_names(moved) & bound:
        return None
    return Draft(tree).move([moved], order[first], after=False).edits()


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
    if not isinstance(node, (cst.Name, cst.Attribute)):
        return None
    name = tree.code(node)
    return statement_replaced(program, place, f"{name} = {name}.detach()")
