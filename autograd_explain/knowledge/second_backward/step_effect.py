"""What the optimizers' steps after a backward did to the part of the graph that it freed."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from autograd_explain.inspect.facts.freed_part import FreedPart, steps_since
from autograd_explain.inspect.facts.torch_call import receiver
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene

from .saved_inputs import leaves_below, saved_leaves
from .uses import call_at


@dataclass(frozen=True)
class Step:
    """An optimizer's step after the earlier backward: whether it writes what the freed part goes
    through (None where that is not known), and whether that part had saved such a value."""

    moment: TraceEvent
    writes: bool | None
    spoils: bool


def steps_after(scene: Scene, part: FreedPart, first: TraceEvent | None) -> tuple[Step, ...]:
    """The optimizers' steps after the backward that freed the part."""
    moments = () if first is None else steps_since(scene, first)
    return tuple(_effect(scene, part, m) for m in moments)


def _effect(scene: Scene, part: FreedPart, moment: TraceEvent) -> Step:
    """What is known of a step, from the live optimizer that its line names."""
    owner = receiver(call_at(scene, moment, "step"))
    optimizer = None if owner is None else scene.slicer.value(owner)
    if not isinstance(optimizer, torch.optim.Optimizer):
        return Step(moment, None, False)
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    writes = any(id(leaf) in held for leaf in leaves_below(part.old))
    spoils = writes and any(id(p) in held for p in saved_leaves(scene.graph, part.old))
    return Step(moment, writes, spoils)
