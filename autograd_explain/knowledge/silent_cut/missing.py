"""The `.grad` of a leaf is read and is None: what cut the leaf off from the loss that went
backward."""

from __future__ import annotations

import torch

from autograd_explain.inspect.dataflow import CutKind
from autograd_explain.inspect.dataflow.gradient_trace import Cut
from autograd_explain.inspect.facts.expressions import attribute_read
from autograd_explain.inspect.facts.lost_gradient import lost_behind
from autograd_explain.inspect.facts.torch_call import live_value
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Event, Finding, Place, Role, What, label

from .details import Details
from .recording_off import RecordingOff

_VARIANTS = {
    CutKind.NUMBER: "number",
    CutKind.NUMPY: "numpy",
    CutKind.COPY: "copy",
    CutKind.NO_GRAD: "no_grad",
    CutKind.COMPARE: "operation",
    CutKind.INTEGER: "operation",
    CutKind.SAMPLE: "sample",
}
_LEAVES = (CutKind.NUMBER, CutKind.NUMPY, CutKind.COPY, CutKind.DETACH)


def of_missing_gradient(scene: Scene) -> Finding[Details] | None:
    """None where the tensor is not known, or no expression on the way to a loss cuts it off."""
    tensor = live_value(scene, attribute_read(scene, "grad"))
    if not isinstance(tensor, torch.Tensor) or not tensor.is_leaf or tensor.grad is not None:
        return None
    cut = lost_behind(scene, tensor) if tensor.requires_grad else None
    if cut is None or cut.kind in (CutKind.GRADIENT, CutKind.FROZEN):
        return None
    spot, names = scene.slicer.place(cut.spot), scene.names.of(tensor)
    off = None if cut.off is None else _off(scene, cut, spot)
    causes = (
        (Event(What.CAUSE, spot),)
        if off is None
        else (Event(What.CAUSE, off.place), Event(What.DETACHED, spot))
    )
    return Finding(
        cause="silent_cut",
        confidence=Confidence.LIKELY,
        facts={
            "parameter": names[0] if names else "",
            "parameters": names[0] if names else "",
            "count": "1",
            "operation": cut.spot.text,
            "operand": cut.operand.text if cut.operand is not cut.spot else "",
            "place": label(spot),
            "optimizer": _optimizer(scene, tensor),
            "step": "",
        },
        tensors=(scene.fact(Role.CULPRIT, tensor, *(s.text for s in cut.trail)),),
        events=(*causes, scene.failed()),
        variant=_VARIANTS.get(cut.kind, "detach"),
        details=Details(
            repairable=cut.kind in _LEAVES,
            off=off,
            drawn=spot if cut.kind is CutKind.SAMPLE else None,
        ),
    )


def _off(scene: Scene, cut: Cut, spot: Place) -> RecordingOff | None:
    if cut.off is None:
        return None
    return RecordingOff(cut.off.by, scene.slicer.place_of(cut.off.scope, cut.off.node), (spot,))


def _optimizer(scene: Scene, leaf: torch.Tensor) -> str:
    """The name of the optimizer that holds the leaf, "" where none is known."""
    for name, optimizer in scene.names.optimizers():
        held = (p for group in optimizer.param_groups for p in group["params"])
        if any(p is leaf for p in held):
            return name
    return ""
