"""A value that a module computed while it was frozen, though its parameters require grad by now: a
turn of another's, which a library or a helper begins and ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.grad_mode import switched_off_around
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.facts.no_graph import NoGraph
from autograd_explain.inspect.facts.value_names import stored_names
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.program import expression_of, is_of_package


@dataclass(frozen=True, eq=False)
class FrozenThen:
    """`call` of `module` gave `name` its value, which `read` went on with."""

    name: str
    call: ExprAt
    module: str
    read: ExprAt


def frozen_then(scene: Scene, found: NoGraph) -> FrozenThen | None:
    """The nearest one behind the value without a graph; None where a cut may be to blame."""
    if found.root is None or found.trace.cuts or not found.trace.carries:
        return None
    spots = [found.root, *computation(scene, found.root)]
    for call in (call for maker in spots for call in calls_around(maker)):
        name = next(_without_graph(scene, call), None)
        if name is None or call.callable is None or not _would_record(scene, call):
            continue
        read = next((spot for spot in spots if _reads(scene, spot, name, call)), None)
        if read is not None:
            return FrozenThen(name, call, call.callable.text, read)
    return None


def _reads(scene: Scene, spot: ExprAt, name: str, call: ExprAt) -> bool:
    """Whether an expression reads what the call gave, and not what became of it since."""
    slicer = scene.slicer
    made = [slicer.makers(o) for o in slicer.operands(spot) if o.text == name]
    return any(
        makers and all(any(c.node is call.node for c in calls_around(m)) for m in makers)
        for makers in made
    )


def calls_around(spot: ExprAt) -> Iterator[ExprAt]:
    """An expression and the calls that it ran in, innermost first."""
    yield spot
    while spot.scope.call is not None:
        spot = spot.scope.call
        yield spot


def _without_graph(scene: Scene, call: ExprAt) -> Iterator[str]:
    """The names of what it gave, which live and have no graph."""
    for name in stored_names(scene, call):
        node = expression_of(name)
        value = None if node is None else scene.slicer.value(scene.slicer.imagined(call, node))
        if is_a(value, torch.Tensor) and not value.requires_grad:
            yield name


def _would_record(scene: Scene, call: ExprAt) -> bool:
    """Whether a module is called that has parameters to train, and no library's code in it."""
    module = None if call.callable is None else scene.slicer.value(call.callable)
    if not is_a(module, torch.nn.Module) or switched_off_around(scene.slicer, call) is not None:
        return False
    unseen = any(is_of_package(type(inner)) for inner in module.modules())
    return not unseen and any(p.requires_grad for p in module.parameters())
