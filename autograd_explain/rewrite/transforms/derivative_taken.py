"""Derivatives that are differentiated again: recorded, or taken from a call instead of read of
`.grad`; and a graph kept for a further backward."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeGuard

import libcst as cst

from ...arguments import bind, given_by
from ...forward_flow import flows_out
from ...model import Edits, Place
from ...program import Program, called_name, own_nodes
from ..analysis.effects import binding_around, fresh
from ..engine.cst_tools import (
    called_on,
    calls_in,
    dotted,
    expression,
    head,
    keyword,
    make,
    method_name,
    repeatable,
    stores,
    walk,
)
from ..engine.draft import Draft
from ..engine.imports import Imports
from ..engine.tree import Statement, Tree, statement_at
from .uncut import Patch, apply_all, apply_patches, keyword_added

#: What calls that take derivatives are given by position (torch/autograd, autograd/functional.py).
TAKES: dict[str, tuple[str, ...]] = {
    "backward": ("gradient", "retain_graph", "create_graph"),
    "grad": ("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph"),
    **dict.fromkeys(("jacobian", "hessian"), ("func", "inputs", "create_graph")),
    **dict.fromkeys(("vjp", "jvp", "vhp", "hvp"), ("func", "inputs", "v", "create_graph")),
}
_RESETS = ("zero_", "detach_", "requires_grad_")


def derivative_taken(program: Program, place: Place) -> Edits | None:
    """`loss.backward(…)`, then `w.grad`, or `p.grad for p in ps` -> the gradients by name, as
    `torch.autograd.grad(loss, w, create_graph=True)` gives them, at the backward of a place or the
    last one before it.  `.grad` adds up what every backward leaves there, without its graph."""
    tree, at = statement_at(program, place)
    start = None if at is None else _backward(tree, at)
    function = tree.imports.local("torch.autograd.grad")
    if start is None or function is None:
        return None
    after = list(_until_next(tree, start))
    stored = {n for s in after for n in stores(s)}
    reads = [n for s in after for n in walk(s) if _is_grad(n) and n not in stored]
    for owner in (read.value for read in reads if isinstance(read.value, cst.Name)):
        if (loop := binding_around(tree, owner)) is not None:
            return _over(Draft(tree), start, function, owner, *loop, reads)
    return _of_each(Draft(tree), start, function, after, reads)


def _backward(tree: Tree, at: Statement) -> cst.Expr | None:
    """The statement, or the last above it in its scope, that goes backward."""
    above = [s for s in tree.statements if tree.start(s) <= tree.start(at)]
    for found in reversed(above):
        if tree.scope_of(found) is tree.scope_of(at) and isinstance(found, cst.Expr):
            reads = found is at and any(_is_grad(n) for n in head(found))
            if method_name(found.value) == "backward" and not reads:
                return found
    return None


def _until_next(tree: Tree, start: Statement) -> Iterator[Statement]:
    """The statements of its scope behind it, up to the next backward, itself too."""
    for statement in tree.statements:
        if tree.start(statement) > tree.start(start):
            if tree.scope_of(statement) is tree.scope_of(start):
                yield statement
            if any(method_name(n) == "backward" for n in head(statement)):
                return


def _is_grad(node: cst.CSTNode) -> TypeGuard[cst.Attribute]:
    return isinstance(node, cst.Attribute) and node.attr.value == "grad" and repeatable(node.value)


def _call(function: str, start: cst.Expr, of: cst.BaseExpression) -> cst.Call:
    """The call that gives what the backward would leave in `.grad`."""
    backward = start.value
    assert isinstance(backward, cst.Call) and isinstance(backward.func, cst.Attribute)
    weights = next((a for a in backward.args if a.keyword is None), keyword(backward, "gradient"))
    given = {"y": backward.func.value, "x": of}
    given |= {} if weights is None else {"w": weights.value}
    arguments = ", ".join(f"{{{name}}}" for name in given)
    call = expression(f"{function}({arguments}, create_graph=True)", **given)
    return cst.ensure_type(call, cst.Call)


def _of_each(
    draft: Draft,
    start: cst.Expr,
    function: str,
    after: Sequence[Statement],
    reads: Sequence[cst.Attribute],
) -> Edits | None:
    """Tensors that are named, each with a name for its gradient."""
    tree = draft.tree
    resets = [s for s in after if any(_is_reset(n) for n in head(s))]
    inside = {n for s in resets for n in walk(s)}
    found: dict[str, list[cst.Attribute]] = {}
    for read in reads:
        if read not in inside and dotted(read.value) is not None:
            found.setdefault(tree.code(read.value), []).append(read)
    if not found:
        return None
    tensors = [nodes[0].value for nodes in found.values()]
    wishes = [f"{code.replace('.', '_')}_grad".removeprefix("self_") for code in found]
    names = [fresh(tree, start, wish) for wish in wishes]
    for name, nodes in zip(names, found.values(), strict=True):
        for node in nodes:
            draft.replace(node, cst.Name(name))
    for statement in resets:
        draft.remove(statement)
    of = tensors[0] if len(tensors) == 1 else cst.Tuple([cst.Element(t) for t in tensors])
    end = "[0]" if len(names) == 1 else ""
    line = make(f"{', '.join(names)} = {{c}}{end}", c=_call(function, start, of))
    return draft.instead(start, [line]).edits()


def _is_reset(node: cst.CSTNode) -> bool:
    """`w.grad.zero_()`: there is nothing to clear where nothing is left."""
    owner = called_on(node, *_RESETS)
    return owner is not None and _is_grad(owner)


def _over(
    draft: Draft,
    start: cst.Expr,
    function: str,
    owner: cst.Name,
    body: cst.CSTNode,
    over: cst.BaseExpression,
    reads: Sequence[cst.Attribute],
) -> Edits | None:
    """The loop goes over the gradients, where it first goes over tensors for `.grad`."""
    own = [n for n in walk(body) if n in reads]
    names = [n for n in walk(body) if isinstance(n, cst.Name) and n.deep_equals(owner)]
    if len(names) != len(own) + 1:  # it is asked for more than its gradient
        return None
    given = fresh(draft.tree, start, "grads")
    draft.instead(start, [make(f"{given} = {{c}}", c=_call(function, start, over))])
    draft.replace(over, cst.Name(given))
    for read in own:
        draft.replace(read, owner)
    return draft.edits()


def with_create_graph(program: Program, places: Iterable[Place | None]) -> Edits | None:
    """`create_graph=True` in every call at the places, and no `retain_graph=False`."""
    calls = list(places)
    found = [_with_flag(program, place, "create_graph") for place in calls]
    for place in calls if all(found) else ():
        call = program.expression_at(place)
        takes = TAKES.get(called_name(call), ())
        if isinstance(call, ast.Call) and "retain_graph" in bind(takes, given_by(call)):
            found.append(_with_flag(program, place, "retain_graph"))
    return apply_all(found)


def _with_flag(program: Program, place: Place | None, flag: str) -> list[Patch]:
    takes = TAKES.get(called_name(program.expression_at(place)), ())
    position = takes.index(flag) if flag in takes else None
    return keyword_added(program, place, flag, "True", position=position)


def derivatives_from(program: Program, place: Place) -> Iterator[Place]:
    """The call of `torch.autograd.grad`, `jacobian` or their like at a place, and those below it in
    the same function whose derivatives are differentiated, or handed back, too: each would lack its
    graph in turn."""
    yield place
    source, first = program.source_at(place), program.expression_at(place)
    if source is None or first is None:
        return
    scope = source.function_at(place) or source.tree
    imports = Imports.of(program, source)
    for call in (n for n in own_nodes(scope) if isinstance(n, ast.Call)):
        later = (call.lineno, call.col_offset) > (first.lineno, first.col_offset)
        plain = not any(k.arg == "create_graph" for k in call.keywords)
        if later and plain and _takes(imports, call) and flows_out(scope, call):
            yield source.place(call.lineno, place.function, call)


def _takes(imports: Imports, call: ast.Call) -> bool:
    module, _, name = imports.full(ast.unparse(call.func)).rpartition(".")
    return name == "grad" if module == "torch.autograd" else module == "torch.autograd.functional"


def keep_graph(program: Program, place: Place | None) -> Edits | None:
    """`loss.backward()` -> `loss.backward(retain_graph=True)`; None where it says so already."""
    tree, found = statement_at(program, place)
    calls = [call for call in calls_in(found) if called_on(call, "backward", "grad")]
    if len(calls) != 1 or keyword(calls[0], "retain_graph") is not None:
        return None
    return apply_patches(keyword_added(program, tree.place(calls[0]), "retain_graph", "True"))
