"""`backward()` was called on what is no tensor and no number that was one: a list, an array."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.expressions import method_call
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.freezing import missing_flag
from autograd_explain.inspect.facts.no_graph import find
from autograd_explain.inspect.facts.other_object import is_value, kind_of, tensors_in
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Place, Role, TensorFact, label

PATTERNS = ("backward-on-non-tensor",)

EXAMPLE = {
    "object": "losses",
    "type": "list",
    "place": "In[2]:3",
    "maker": "[(decoder(code) - x).pow(2).mean(), 0.1 * code.pow(2).mean()]",
    "maker_place": "In[2]:2",
    "part": "",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    object: str
    part: str  #: the one tensor in it
    all_losses: bool
    root: Place | None
    maker: Place | None


def diagnose(scene: Scene) -> Finding[Details] | None:
    shown = method_call(scene, "backward")
    found = getattr(scene.incident.exception, "obj", None)  # Python 3.10 and later keep it
    if shown is None or isinstance(found, torch.Tensor):
        return None
    if is_value(found) and _was_tensor(scene):
        return None
    maker = _maker(scene, shown)
    parts = dict(tensors_in(found, shown.text))
    part = next(iter(parts)) if len(parts) == 1 else ""
    all_losses = isinstance(found, (list, tuple)) and len(parts) == len(found) > 1
    return finding_from_message(
        scene,
        "backward_on_no_tensor",
        EXAMPLE,
        facts={
            "object": shown.text,
            "maker": "" if maker is None else maker.text,
            "maker_place": label(scene.place_at(maker)),
            "part": part,
        },
        variant=kind_of(found),
        confidence=Confidence.PROVEN,
        tensors=(TensorFact(Role.CULPRIT, (shown.text,)),),
    ).with_details(
        Details(
            shown.text,
            part,
            all_losses,
            scene.place_at(shown),
            scene.place_at(maker) if _is_uncalled(found) else None,
        )
    )


def _was_tensor(scene: Scene) -> bool:
    """Whether a tensor is behind the value, as far as the source shows: its graph was cut."""
    found = find(scene)
    if found is None or found.cut is not None or found.recording_off or found.frozen:
        return True
    return found.trace.carries or missing_flag(scene, found.root) is not None


def _is_uncalled(found: Any) -> bool:
    """`(x * x).sum`: calling a tensor's own method needs no more."""
    owner = getattr(found, "__self__", None)
    return isinstance(found, types.BuiltinMethodType) and isinstance(owner, torch.Tensor)


def _maker(scene: Scene, shown: ExprAt) -> ExprAt | None:
    """The one expression that made the object, if it is another one."""
    makers: Iterator[ExprAt] = iter(scene.slicer.makers(shown))
    found = [m for m in makers if m.node is not shown.node]
    return found[0] if len(found) == 1 else None
