"""A derivative that a loss is computed from, taken by a call that freed the graph it went through.

Without `create_graph=True`, `torch.autograd.grad` frees the graph and gives plain values.  Where a
loss is computed from these, keeping the graph only silences the error: the loss would not know
that they depend on the weights.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from autograd_explain.inspect.dataflow import CutKind, ExprAt
from autograd_explain.inspect.dataflow.cut_kinds import cut_of
from autograd_explain.inspect.dataflow.gradient_trace import elements_of
from autograd_explain.inspect.dataflow.safe_lookup import is_module
from autograd_explain.inspect.facts.torch_call import calls_in, gone_back_from
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Place

from .calls import Calls
from .freed_part import FreedPart
from .step_effect import leaves_below

_MANY = 600


@dataclass(frozen=True, eq=False)
class Derivative:
    """`calls` are those of `torch.autograd.grad` on the way to a loss, the one that freed the graph
    among them; `trained` tells that one is with respect to what is trained.  `of` is what the one
    that freed the graph was asked for the derivative of, "" where that has no name."""

    calls: tuple[Place, ...]
    trained: bool
    of: str


def derivative_in_loss(
    scene: Scene, part: FreedPart, calls: Calls, failing: list[ExprAt]
) -> Derivative | None:
    """What the earlier call is to the loss that failed (`failing`), or to one that is still to go
    backward; None where no loss needs its graph.

    A derivative that the same weights are applied to again is a step that was taken (an
    adversarial example, a sample), a weight for another term is detached.
    """
    first = calls.first
    if first is None or cut_of(scene.slicer, first) is not CutKind.GRADIENT:
        return None
    inputs = {id(t) for t in _inputs(scene, first)}
    weights = {id(leaf) for leaf in leaves_below(part.old)} - inputs
    for root in (*failing, *_other_losses(scene)):
        found = _derivatives(scene, root, weights)
        if any(spot.node is first.node for spot in found):
            places = dict.fromkeys(scene.slicer.place(spot) for spot in found)
            trained = any(_is_of_trained(scene, s) for s in found)
            return Derivative(tuple(places), trained, _outputs(scene, first))
    return None


def _outputs(scene: Scene, call: ExprAt) -> str:
    """`pred` of `grad(pred.sum(), x)`."""
    given = call.argument(0, "outputs")
    node = None if given is None else given.node
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    if given is None or not isinstance(node, (ast.Name, ast.Attribute)):
        return ""
    return "" if is_module(scene.slicer.value(given.inside(node))) else ast.unparse(node)


def _other_losses(scene: Scene) -> Iterator[ExprAt]:
    losses = (gone_back_from(scene, call) for call in calls_in(scene, "backward"))
    return (loss for loss in losses if loss is not None)


def _derivatives(scene: Scene, root: ExprAt, weights: set[int]) -> list[ExprAt]:
    """The calls of grad whose values, or derivatives of them, came to a loss; not past what the
    weights are applied to, nor past what ends the graph."""
    slicer = scene.slicer
    found: list[ExprAt] = []
    pending, seen = [root], set[tuple[int, int]]()
    while pending and len(seen) < _MANY:
        spot = pending.pop()
        makers = slicer.makers(spot)
        pending += elements_of(spot, makers)
        for maker in makers:
            key = id(maker.node), id(maker.scope.call)
            if key in seen:
                continue
            seen.add(key)
            cut = cut_of(slicer, maker)
            if cut is CutKind.GRADIENT and isinstance(maker.node, ast.Call):
                found.append(maker)
                outputs = maker.argument(0, "outputs")
                pending += [] if outputs is None else [outputs]
            elif cut is None and not _applies(scene, maker, weights):
                pending += slicer.operands(maker)
    return found


def _applies(scene: Scene, spot: ExprAt, weights: set[int]) -> bool:
    """Whether an expression applies one of the weights: calls a module or a function with it."""
    slicer, called = scene.slicer, spot.callable
    module = None if called is None else slicer.value(called)
    if isinstance(module, torch.nn.Module):
        return any(id(p) in weights for p in module.parameters())
    product = isinstance(spot.node, ast.BinOp) and isinstance(spot.node.op, ast.MatMult)
    given = slicer.operands(spot) if product or called is not None else []
    return any(id(slicer.tensor(operand)) in weights for operand in given)


def _inputs(scene: Scene, call: ExprAt) -> list[torch.Tensor]:
    """The tensors with respect to which a derivative is taken, as far as they live."""
    given = call.argument(1, "inputs")
    value = None if given is None else scene.slicer.value(given)
    several = value if isinstance(value, (list, tuple)) else (value,)
    return [t for t in several if isinstance(t, torch.Tensor)]


def _is_of_trained(scene: Scene, call: ExprAt) -> bool:
    given, inputs = call.argument(1, "inputs"), _inputs(scene, call)
    if given is not None and any(m.called == "parameters" for m in _makers(scene, given)):
        return True
    return any(isinstance(t, torch.nn.Parameter) for t in inputs) or (
        scene.gradient_tracer.holds(inputs)
    )


def _makers(scene: Scene, given: ExprAt) -> Iterator[ExprAt]:
    """What made a value, behind `list(…)` too."""
    for maker in scene.slicer.makers(given):
        yield maker
        if maker.called in ("list", "tuple"):
            yield from (m for o in scene.slicer.operands(maker) for m in scene.slicer.makers(o))
