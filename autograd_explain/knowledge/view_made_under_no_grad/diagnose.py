"""A view was made while gradients were off and is written while they are on."""

import torch

from autograd_explain.inspect import view_write
from autograd_explain.inspect.attribution import label
from autograd_explain.inspect.origin import event_at, place_of, walker_of
from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.source_walk import Off
from autograd_explain.inspect.source_walk.grad_mode import switched_off_around
from autograd_explain.inspect.view_write import ViewWrite
from autograd_explain.model import Confidence, Event, Finding, What

PATTERNS = (
    "view-nograd-inplace",
    "view-nograd-base-modified",
    "view-of-view-nograd-inplace",
    "view-of-view-base-modified-nograd",
    "view-inference-inplace",
    "view-inference-base-modified",
    "view-of-view-inference-inplace",
)

EXAMPLE = {
    "tensor": "left",
    "maker": "frame[:, :middle]",
    "made": "In[1]:9",
    "off": "@torch.no_grad()",
    "off_place": "In[1]:6",
    "write": "left += shift",
    "place": "In[2]:4",
    "function": "halves",
}


def diagnose(scene: Scene) -> Finding | None:
    found = view_write.find(scene)
    if found is None:
        return None
    walker = walker_of(scene)
    off = None if found.maker is None else switched_off_around(walker, found.maker)
    off_place = None if off is None else walker.place_of(off.scope, off.node)
    culprit = view_write.fact(scene, found)
    place = scene.place
    return Finding(
        cause="view_made_under_no_grad",
        confidence=Confidence.PROVEN if off is not None else Confidence.LIKELY,
        facts={
            "tensor": culprit.names[0] if culprit.names else "",
            "maker": "" if found.maker is None else found.maker.text,
            "made": "" if found.maker is None else label(place_of(scene, found.maker)),
            "off": "" if off_place is None else off_place.source,
            "off_place": "" if off_place is None else label(off_place),
            "write": "" if place is None else place.source,
            "place": label(place),
            "function": (off.scope.function or "") if off is not None else "",
        },
        tensors=(culprit,),
        events=(view_write.changed(scene, found), *_made(scene, found, off), scene.failed()),
        variant="parameter" if _writes_parameter(found) else "",
    )


def _made(scene: Scene, found: ViewWrite, off: Off | None) -> tuple[Event, ...]:
    """What made the view, and what had turned gradients off."""
    made = () if found.maker is None else (event_at(scene, What.CREATED, found.maker, "view"),)
    if off is None:
        return made
    place = walker_of(scene).place_of(off.scope, off.node)
    return (*made, Event(What.DETACHED, place, off.by.value))


def _writes_parameter(found: ViewWrite) -> bool:
    """The view looks into a leaf that requires grad: then the write is an update of it."""
    base = None if found.tensor is None else found.tensor._base
    return isinstance(base, torch.Tensor) and base.is_leaf and base.requires_grad
