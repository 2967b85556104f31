"""Outputs that a hook keeps of a layer, and that a later layer writes in place.

What is read from them afterwards is the later layer's result.  The version counter says nothing:
it counts what the graph saved, and the hook saved nothing there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn

from ...model import Place
from ...program import Program
from ..observe.event_log import EventLog
from ..observe.tensor_facts import storage, version
from .finding import CandidateFault, Mark, Marks, weak
from .kept_by_hook import kept_outputs
from .parameter_owners import live
from .unused_gradients import Gradients


def overwritten_outputs(
    namespace: Mapping[str, Any], gradients: Gradients, log: EventLog, program: Program, since: int
) -> Iterator[CandidateFault]:
    """Where a hook keeps outputs that were written after a time, each line once; no alarm where
    nothing was trained afterwards."""
    backward = gradients.last_backward
    roots = live(namespace, (nn.Module,)) if backward.clock > since else ()
    layers = {id(m): m for root in roots for m in root.modules() if _makes_anew(m)}
    told = set[Place]()
    for kept in kept_outputs(program, layers.values()):
        memory, now = storage(kept.value), version(kept.value)
        writes = (w for w in log.writes_after(since) if w.storage == memory and w.after == now)
        write = next(writes, None) if now and kept.value.grad_fn is not None else None
        if write is not None and kept.place not in told:
            told.add(kept.place)
            marks: Marks = {
                "changed": (Mark(write.site, write.clock, made=False),),
                "backward": (backward,),
            }
            evidence = {
                "way": "kept",
                "tensor": weak(kept.value),
                "node": type(kept.layer).__name__,
                "place": kept.place,
                "kept": kept.name,
            }
            sure = gradients.last_step.clock > write.clock
            yield CandidateFault("kept-output-overwritten", marks, evidence, sure)


def _makes_anew(module: nn.Module) -> bool:
    """Whether a layer with a hook gives its output memory of its own: torch's, with weights."""
    if not module._forward_hooks or not type(module).__module__.startswith("torch.nn.modules."):
        return False
    return any(p is not None for p in vars(module).get("_parameters", {}).values())
