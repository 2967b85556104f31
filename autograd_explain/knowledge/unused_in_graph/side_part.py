"""A part taken beside the graph: `autograd.grad(u, x[:, :1])`, where u was computed from x.

The gradient of the whole is there; what was asked for is a part of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from autograd_explain.arguments import parameters
from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.reaching_definitions import FUNCTIONS, all_bindings
from autograd_explain.inspect.facts.torch_call import maker
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Place


@dataclass(frozen=True)
class PartAsked:
    """One argument that is a part: `index` is what takes it of the whole (`[:, :1]`).

    `result` is the expression whose value is its gradient, None where the statement gives that the
    name `target`.
    """

    argument: Place
    index: str
    result: Place | None
    target: str


@dataclass(frozen=True, eq=False)
class SideParts:
    """The parts of `whole` that calls of one function are asked for, each with its maker."""

    whole: str
    makers: tuple[ExprAt, ...]
    asked: tuple[PartAsked, ...]


def side_parts(scene: Scene, shown: ExprAt | None, asked: ExprAt | None) -> SideParts | None:
    """The parts, that of the failing call first; None where the graph does not use their whole.

    `asked` is the argument of the failing `grad`, `shown` the same in the words of the caller.
    """
    call = None if shown is None else _call_around(scene, shown)
    if shown is None or asked is None or call is None:
        return None
    helped = shown.scope is not asked.scope
    if helped and not _returns_gradient(scene, asked):
        return None
    first = _part(scene, shown)
    if first is None:
        return None
    whole, found = first[0], []
    for argument in (shown, *_arguments(scene, shown, call)):
        part, place = _part(scene, argument), _result(scene, argument, helped)
        if part is not None and part[0] == whole and place is not None:
            at = scene.slicer.place(argument)
            found.append((part[2], PartAsked(at, part[1], *place)))
    if not found or found[0][1].argument != scene.slicer.place(shown):
        return None
    makers = {id(m.node): m for m, _ in found}
    return SideParts(whole, tuple(makers.values()), tuple(p for _, p in found))


_COPIES = ("clone", "contiguous", "detach", "requires_grad_")


def _part(scene: Scene, spot: ExprAt) -> tuple[str, str, ExprAt] | None:
    """The whole that the graph uses, what takes the part of it, and where that is done."""
    made = _named(scene, spot) or maker(scene, spot)
    node, index = None if made is None else made.node, ""
    while made is not None and isinstance(node, (ast.Subscript, ast.Call)):
        if isinstance(node, ast.Subscript):
            owner: ast.expr = node.value
            index = ast.unparse(node)[len(ast.unparse(owner)) :] + index
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _COPIES:
            owner = node.func.value
        else:
            return None
        if index and _is_used(scene, made.inside(owner), spot):
            return ast.unparse(owner), index, made
        node = owner
    return None


def _named(scene: Scene, spot: ExprAt) -> ExprAt | None:
    """The part as it is written: the slicer goes on into the list that a tensor is an item of."""
    if isinstance(spot.node, ast.Subscript):
        return spot
    found = scene.slicer.bindings(spot, spot.text) if isinstance(spot.node, ast.Name) else []
    if len(found) != 1 or found[0][1].path:
        return None
    scope, statement = found[0][0], found[0][1].statement
    return ExprAt(scope, statement.value) if isinstance(statement, ast.Assign) else None


def _is_used(scene: Scene, whole: ExprAt, spot: ExprAt) -> bool:
    """Whether the graph leads to the whole, which has the same name where the part is asked for."""
    tensor = _live(scene, whole)
    if tensor is None or not tensor.requires_grad or not _is_seen(scene, whole, spot, tensor):
        return False
    if tensor.is_leaf:
        return any(n.variable is tensor for n in scene.graph.nodes)
    return any(n.node is tensor.grad_fn for n in scene.graph.nodes)


def _live(scene: Scene, spot: ExprAt) -> torch.Tensor | None:
    """The tensor that an expression names, where its function still runs in that frame."""
    running = scene.slicer.frame_scope(spot.scope.body)
    value = scene.slicer.value(spot if running is None else replace(spot, scope=running))
    return value if isinstance(value, torch.Tensor) else None


def _is_seen(scene: Scene, whole: ExprAt, spot: ExprAt, tensor: torch.Tensor) -> bool:
    """Whether the same words mean the same tensor there, as an inner function's do that gives the
    names no value of its own."""
    body = spot.scope.body
    if body is not whole.scope.body and any(n is body for n in ast.walk(whole.scope.body)):
        names = [n.id for n in ast.walk(whole.node) if isinstance(n, ast.Name)]
        own = isinstance(body, FUNCTIONS) and {*parameters(body)}
        return not any((own and n in own) or all_bindings(body, n) for n in names)
    there = ast.parse(whole.text, mode="eval").body
    return _live(scene, scene.slicer.imagined(spot, there)) is tensor


def _returns_gradient(scene: Scene, asked: ExprAt) -> bool:
    """Whether the helper around the argument does `return grad(…)[0]`."""
    parents = scene.slicer.index(asked.scope.source).parents
    call = _call_around(scene, asked)
    taken = None if call is None else parents.get(call)
    whole = asked.scope.call is not None and isinstance(taken, ast.Subscript)
    return whole and isinstance(parents.get(taken), ast.Return) if taken is not None else False


def _call_around(scene: Scene, argument: ExprAt) -> ast.Call | None:
    """The call that an expression is an argument of, itself or in a list."""
    parents = scene.slicer.index(argument.scope.source).parents
    around = parents.get(argument.node)
    while isinstance(around, (ast.List, ast.Tuple, ast.keyword)):
        around = parents.get(around)
    return around if isinstance(around, ast.Call) else None


def _arguments(scene: Scene, shown: ExprAt, call: ast.Call) -> Iterator[ExprAt]:
    """The same argument of the other calls of this function in the same body."""
    function = ast.unparse(call.func)
    for node in ast.walk(shown.scope.body):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == function:
            given = [*node.args[1:], *(k.value for k in node.keywords)]
            for argument in given:
                listed = isinstance(argument, (ast.List, ast.Tuple))
                for one in argument.elts if listed else [argument]:  # type: ignore[attr-defined]
                    if one is not shown.node and isinstance(one, (ast.Name, ast.Subscript)):
                        yield shown.inside(one)


def _result(scene: Scene, argument: ExprAt, helped: bool) -> tuple[Place | None, str] | None:
    """Where the gradient of an argument is: an expression, or the name that it is given."""
    parents = scene.slicer.index(argument.scope.source).parents
    call = _call_around(scene, argument)
    around = None if call is None else parents.get(call)
    if call is None or around is None:
        return None
    listed = parents.get(argument.node)
    elements = listed.elts if isinstance(listed, (ast.List, ast.Tuple)) else [argument.node]
    if helped:
        return (scene.slicer.place(argument.inside(call)), "") if len(elements) == 1 else None
    if isinstance(around, ast.Subscript) and len(elements) == 1:
        return scene.slicer.place(argument.inside(around)), ""
    target = around.targets[0] if isinstance(around, ast.Assign) else None
    names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    if len(names) != len(elements):
        return None
    name = names[next(i for i, e in enumerate(elements) if e is argument.node)]
    return (None, name.id) if isinstance(name, ast.Name) else None
