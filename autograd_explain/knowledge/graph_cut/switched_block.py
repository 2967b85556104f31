"""A block of a module's own (`with model.disable_adapter():`) in which what is trained takes no
part, and a call of the module that stands in it with the loss."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.facts.no_graph import NoGraph
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a


@dataclass(frozen=True, eq=False)
class SwitchedBlock:
    """`switch` is the call that opens the block, of a method of `module`; `inside` is what the loss
    was computed from in there, the module's call first."""

    switch: ExprAt
    module: ExprAt
    inside: tuple[ExprAt, ...]


def switched_block(scene: Scene, found: NoGraph) -> SwitchedBlock | None:
    """The block around a call of a module that has something to train and gave no graph."""
    if found.root is None:
        return None
    spots = list(_passed(scene, found, found.root))
    for spot in spots:
        for block, switch in _blocks(scene, spot):
            module = switch.receiver
            if module is not None and _is_called_in(scene, module, spot):
                index = scene.slicer.index(spot.scope.source)
                inside = (s for s in spots if s is not spot and block in index.ancestors(s.node))
                return SwitchedBlock(switch, module, (spot, *inside))
    return None


def _passed(scene: Scene, found: NoGraph, root: ExprAt) -> Iterator[ExprAt]:
    """What gradient would pass on its way from the loss, calls of the user's functions too."""
    ends = {id(cut.spot.node) for cut in found.trace.cuts}
    seen = {*ends}
    for spot in computation(scene, root, ends=ends):
        level: ExprAt | None = None if id(spot.node) in ends else spot
        while level is not None:
            if id(level.node) not in seen:
                seen.add(id(level.node))
                yield level
            level = level.scope.call


def _blocks(scene: Scene, spot: ExprAt) -> Iterator[tuple[ast.With, ExprAt]]:
    for node in scene.slicer.index(spot.scope.source).ancestors(spot.node):
        for item in node.items if isinstance(node, ast.With) else ():
            if isinstance(node, ast.With) and isinstance(item.context_expr, ast.Call):
                yield node, spot.inside(item.context_expr)


def _is_called_in(scene: Scene, owner: ExprAt, call: ExprAt) -> bool:
    """Whether a call is of a module, or of one in it, that has something to train."""
    value = scene.slicer.value
    whole, called = value(owner), None if call.callable is None else value(call.callable)
    return (
        is_a(whole, torch.nn.Module)
        and is_a(called, torch.nn.Module)
        and any(m is called for m in whole.modules())
        and any(p.requires_grad for p in called.parameters())
    )
