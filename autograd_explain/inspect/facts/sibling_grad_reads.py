"""Further tensors whose `.grad` the user reads together with one: in a loop, or a line below.

torch gives its warning once for a line, and an error ends a loop in its first round; a repair
for the first tensor alone would only move the trouble to the next.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import torch

from ...arguments import given_by
from ..dataflow import ExprAt
from ..dataflow.live_values import named
from ..dataflow.safe_lookup import Named, evaluate, iterated, taken
from ..scene import Scene
from .expressions import live_spot
from .non_leaf import fits_node
from .torch_call import elements

_MAX_READ = 20


def read_alike(
    scene: Scene, tensor: torch.Tensor, shown: ExprAt | None
) -> tuple[torch.Tensor, ...]:
    """The other non-leaves that this reading reads, as far as living names tell; those that a
    library's call was given, where it is the library that reads (`shown` is None)."""
    found = [tensor]
    nearby = _handed_over(scene) if shown is None else _reads_nearby(scene, shown)
    for other in (*(() if shown is None else _rounds(scene, shown)), *nearby):
        if _is_unkept(other) and all(other is not f for f in found):
            found.append(other)
    return tuple(found[1:_MAX_READ])


def spelled(scene: Scene, tensor: torch.Tensor, shown: ExprAt) -> ExprAt:
    """The expression with which the source tells where a tensor was made: what the user wrote;
    where that may be several tensors, tells nothing (`getattr(model, name)`) or leads to what has
    not made it (`**named`), its own name."""
    makers = scene.slicer.makers(shown)
    traced = len(makers) == 1 and makers[0].node is not shown.node
    own = None if traced and _may_make(makers, tensor) else live_spot(scene, tensor)
    if own is None or (traced and not _may_make(scene.slicer.makers(own), tensor)):
        return shown
    return own


def _may_make(makers: list[ExprAt], tensor: torch.Tensor) -> bool:
    node = "" if tensor.grad_fn is None else tensor.grad_fn.name()
    return any(fits_node(m.node, node) for m in makers)


def _is_unkept(value: object) -> bool:
    return isinstance(value, torch.Tensor) and not (value.is_leaf or value.retains_grad)


def _reads_nearby(scene: Scene, shown: ExprAt) -> Iterator[Any]:
    """`b` of another `b.grad` in the same function or cell."""
    for node in ast.walk(shown.scope.body):
        if isinstance(node, ast.Attribute) and node.attr == "grad":
            if isinstance(node.ctx, ast.Load):
                yield scene.slicer.value(shown.inside(node.value))


def _handed_over(scene: Scene) -> Iterator[Any]:
    """`h1` and `h2` of a library's `clip([h1, h2], 1.0)`."""
    call = scene.surfaced
    if call is None or not isinstance(call.node, ast.Call):
        return
    for _, node in given_by(call.node):
        for element in elements(scene, call.inside(node)):
            yield scene.slicer.value(element)


def _rounds(scene: Scene, shown: ExprAt) -> Iterator[Any]:
    """What the expression is in each round of the loop around it."""
    look = named(scene.slicer, shown.scope)
    for target, iterable in _loops(scene, shown):
        for element in iterated(iterable, look):
            yield evaluate(shown.node, _given(taken(target, element), look))


def _given(round_: dict[str, Any], look: Named) -> Named:
    return lambda node: round_[node.id] if node.id in round_ else look(node)


def _loops(scene: Scene, shown: ExprAt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The loops and comprehensions around an expression, without those of other functions."""
    for around in scene.slicer.index(shown.scope.source).ancestors(shown.node):
        if around is shown.scope.body:
            return
        for loop in (around, *getattr(around, "generators", ())):
            if isinstance(loop, (ast.For, ast.comprehension)):
                yield loop.target, loop.iter
