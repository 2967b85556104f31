"""Where a loss that went backward lost a leaf that got no gradient, as the text tells it."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ...nodes import GraphTraversal, start_of
from ..dataflow import ExprAt
from ..dataflow.gradient_trace import Cut
from ..scene import Scene
from .expressions import computation
from .torch_call import calls_in, gone_back_from

_MANY = 2_000
_SECONDS = 0.3


def lost_behind(scene: Scene, leaf: torch.Tensor) -> Cut | None:
    """The cut that lies nearest to the leaf, between it and a loss that a backward of the program
    goes back from; None where no expression on the way cuts."""
    for call in calls_in(scene, "backward"):
        loss = gone_back_from(scene, call)
        way = [] if loss is None else [*scene.slicer.makers(loss), *computation(scene, loss)]
        for spot in reversed(way):
            cut = scene.gradient_tracer.cut_at(spot)
            if cut is not None and _comes_from(scene, spot, leaf):
                return cut
    return None


def _comes_from(scene: Scene, spot: ExprAt, leaf: torch.Tensor) -> bool:
    return any(_holds(scene, s, leaf) for s in (spot, *_operands(scene, spot)))


def _operands(scene: Scene, spot: ExprAt) -> Iterator[ExprAt]:
    for operand in scene.slicer.operands(spot):
        yield operand
        yield from computation(scene, operand)


def _holds(scene: Scene, spot: ExprAt, leaf: torch.Tensor) -> bool:
    """Whether an expression is the leaf, has it in its graph, or calls a module that has it."""
    tensor = scene.slicer.tensor(spot)
    if tensor is not None:
        if tensor is leaf:
            return True
        walk = GraphTraversal([start_of(tensor)], limit=_MANY, seconds=_SECONDS)
        return any(getattr(n.node, "variable", None) is leaf for n in walk)
    module = None if spot.callable is None else scene.slicer.value(spot.callable)
    return isinstance(module, torch.nn.Module) and any(p is leaf for p in module.parameters())
