"""Values computed from the input that an object was given, whose numbers alone the result reads."""

from __future__ import annotations

from collections.abc import Collection

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.facts.failing_loops import has_not_run
from autograd_explain.inspect.facts.numbers_given import NumbersGiven, numbers_given
from autograd_explain.inspect.scene import Scene


def kept_numbers(
    scene: Scene, tensor: torch.Tensor, shown: ExprAt | None
) -> tuple[NumbersGiven, ...]:
    """Those that objects keep in leaves of the differentiated graph, the last one first."""
    leaves = {id(n.variable) for n in scene.graph.nodes if n.variable is not None}
    goal = set() if shown is None else {id(m.node) for m in scene.slicer.makers(shown)}
    given = numbers_given(scene, lambda value: _comes_from(scene, value, tensor, goal))
    ran = (g for g in given if id(g.tensor) in leaves and not has_not_run(scene, g.kept.place))
    found = {g.kept: g for g in ran}  # a statement of a method once for all modules of the class
    return tuple(reversed(found.values()))


def _comes_from(scene: Scene, value: ExprAt, tensor: torch.Tensor, goal: Collection[int]) -> bool:
    """Whether a value is computed from a tensor: by its expression, by a live name, or by a call of
    a module that has it as a parameter."""
    slicer = scene.slicer
    for spot in (*slicer.makers(value), *computation(scene, value, ends=goal)):
        if id(spot.node) in goal or slicer.tensor(spot) is tensor:
            return True
        for called in (spot.callable, spot.receiver):
            owner = None if called is None else slicer.value(called)
            if isinstance(owner, torch.nn.Module):
                if any(p is tensor for p in owner.parameters()):
                    return True
    return False
