"""A GradScaler was to step or update, but no gradient of this optimizer went through it."""

from dataclasses import dataclass
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import (
    before,
    calls_in,
    failing_call,
    live_value,
)
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Place, Role, TensorFact, label

PATTERNS = ("gradscaler-no-inf-checks-step", "gradscaler-no-inf-checks-update")

EXAMPLE = {
    "place": "In[2]:4",
    "scaler": "scaler",
    "optimizer": "optimizer",
    "cleared": "optimizer.zero_grad()",
    "backward": "scaler.scale(loss).backward()",
    "backward_place": "In[2]:3",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    cleared: bool
    backward: Place | None


def diagnose(scene: Scene) -> Finding[Details] | None:
    call = failing_call(scene, "step", "update")
    owner, optimizer = call and call.receiver, call and call.argument(0, "optimizer")
    if call is None or owner is None:
        return None
    step = scene.match.pattern == "gradscaler-no-inf-checks-step"
    cleared, backward = _cleared(scene, call) if step else (None, None)
    empty = step and _no_gradients(live_value(scene, optimizer))
    return finding_from_message(
        scene,
        "scaler_without_gradients",
        EXAMPLE,
        facts={
            "scaler": owner.text,
            "optimizer": "" if optimizer is None else optimizer.text,
            "cleared": "" if cleared is None else cleared.text,
            "backward": "" if backward is None else backward.text,
            "backward_place": label(scene.place_at(backward)),
        },
        at=cleared or call,
        variant="update" if not step else ("cleared" if cleared is not None else ""),
        confidence=Confidence.PROVEN if empty or not step else Confidence.LIKELY,
        tensors=(TensorFact(Role.CULPRIT, ("" if optimizer is None else optimizer.text,)),),
    ).with_details(Details(cleared is not None, scene.place_at(backward)))


def _no_gradients(optimizer: Any) -> bool:
    if not isinstance(optimizer, torch.optim.Optimizer):
        return False
    return all(p.grad is None for g in optimizer.param_groups for p in g["params"])


def _cleared(scene: Scene, call: ExprAt) -> tuple[ExprAt | None, ExprAt | None]:
    """`zero_grad()` between the backward before the failing line and that line."""
    here = [s for s in calls_in(scene, "backward", "zero_grad") if _near(scene, s, call)]
    here.sort(key=lambda s: (s.node.lineno, s.node.col_offset))
    backward = next((s for s in reversed(here) if "backward" in s.text), None)
    if backward is None:
        return None, None
    later = [s for s in here if "zero_grad" in s.text and before(scene, backward, s)]
    return (later[0], backward) if later else (None, backward)


def _near(scene: Scene, spot: ExprAt, call: ExprAt) -> bool:
    return spot.scope.body is call.scope.body and before(scene, spot, call)
