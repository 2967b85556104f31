"""Where a loss that went backward lost a leaf that got no gradient, as the text tells it, or a
recording."""

from __future__ import annotations

import time
from collections.abc import Iterator
from weakref import WeakKeyDictionary

import torch

from ...nodes import GraphTraversal, start_of
from ..dataflow import ExprAt
from ..dataflow.gradient_trace import Cut
from ..scene import Scene
from .expressions import computation, expression_at
from .observed_cuts import observed_cuts
from .torch_call import calls_in, gone_back_from

_MANY = 2_000
_SECONDS = 0.5  #: for a program whose loss is computed of very much
#: Two causes ask; a scene lives no longer for it.
_FOUND: WeakKeyDictionary[Scene, dict[int, Cut | None]] = WeakKeyDictionary()


def lost_behind(scene: Scene, leaf: torch.Tensor) -> Cut | None:
    """The cut that lies nearest to the leaf, between it and a loss that a backward of the program
    goes back from; None where no expression on the way cuts, or that takes too long to see."""
    known = _FOUND.setdefault(scene, {})
    if id(leaf) not in known:
        known[id(leaf)] = _lost_behind(scene, leaf)
    return known[id(leaf)]


def _lost_behind(scene: Scene, leaf: torch.Tensor) -> Cut | None:
    behind = _Behind(scene, leaf)
    for call in calls_in(scene, "backward"):
        loss = gone_back_from(scene, call)
        way = [] if loss is None else [*scene.slicer.makers(loss), *computation(scene, loss)]
        for spot in reversed(way):
            cut = scene.gradient_tracer.cut_at(spot)
            if cut is not None and behind.leads(spot):
                return cut
    seen = (expression_at(scene, cut.place) for cut in observed_cuts(scene, leaf))
    cuts = (scene.gradient_tracer.cut_at(spot) for spot in seen if spot is not None)
    return next((cut for cut in cuts if cut is not None), None)


class _Behind:
    """Which expressions come from a leaf; each is looked at once."""

    def __init__(self, scene: Scene, leaf: torch.Tensor) -> None:
        self._scene, self._leaf = scene, leaf
        self._stop = time.monotonic() + _SECONDS
        #: With the expressions themselves, so that their identities stay theirs.
        self._known: dict[tuple[int, int], tuple[ExprAt, bool]] = {}

    def leads(self, spot: ExprAt) -> bool:
        return any(self._holds(s) for s in (spot, *self._operands(spot)))

    def _operands(self, spot: ExprAt) -> Iterator[ExprAt]:
        for operand in self._scene.slicer.operands(spot):
            yield operand
            yield from computation(self._scene, operand)

    def _holds(self, spot: ExprAt) -> bool:
        key = id(spot.node), id(spot.scope)
        if key not in self._known:
            late = time.monotonic() > self._stop
            self._known[key] = spot, not late and self._is_of_leaf(spot)
        return self._known[key][1]

    def _is_of_leaf(self, spot: ExprAt) -> bool:
        """Whether it is the leaf, has it in its graph, or calls a module that has it."""
        tensor = self._scene.slicer.tensor(spot)
        if tensor is not None:
            walk = GraphTraversal([start_of(tensor)], limit=_MANY, seconds=_SECONDS)
            return tensor is self._leaf or any(leaf is self._leaf for leaf in walk.leaves())
        module = None if spot.callable is None else self._scene.slicer.value(spot.callable)
        found = module.parameters() if isinstance(module, torch.nn.Module) else ()
        return any(parameter is self._leaf for parameter in found)
