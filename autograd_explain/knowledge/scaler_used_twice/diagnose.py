"""A GradScaler was asked twice for what it does once between two updates."""

from dataclasses import dataclass
from typing import Any

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import (
    before,
    calls_in,
    failing_call,
    is_called_on,
    live_value,
)
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Role, TensorFact, label

PATTERNS = ("gradscaler-unscale-twice", "gradscaler-step-twice")

EXAMPLE = {
    "place": "In[2]:6",
    "scaler": "scaler",
    "optimizer": "optimizer",
    "first": "",
    "first_place": "?",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    scaler: str
    updated: bool
    again: bool  #: the same call came before in the same function


def diagnose(scene: Scene) -> Finding[Details] | None:
    call = failing_call(scene, "step", "unscale_")
    owner, optimizer = call and call.receiver, call and call.argument(0, "optimizer")
    if call is None or owner is None:
        return None
    scaler = live_value(scene, owner)
    updated = any(is_called_on(scene, s, scaler) for s in calls_in(scene, "update"))
    first = _earlier(scene, call, scaler) if updated else None
    variant = "" if not updated else ("again" if first is not None else "order")
    return finding_from_message(
        scene,
        "scaler_used_twice",
        EXAMPLE,
        facts={
            "scaler": owner.text,
            "optimizer": "" if optimizer is None else optimizer.text,
            "first": "" if first is None else first.text,
            "first_place": label(scene.place_at(first)),
        },
        at=call if updated else _last_step(scene, scaler) or call,
        variant=variant,
        confidence=Confidence.LIKELY if variant == "order" else Confidence.PROVEN,
        tensors=(TensorFact(Role.CULPRIT, (owner.text,)),),
    ).with_details(Details(owner.text, updated, again=first is not None))


def _earlier(scene: Scene, call: ExprAt, scaler: Any) -> ExprAt | None:
    """The same call for the same optimizer, earlier in the same function or cell."""
    given = call.argument(0, "optimizer")
    for spot in calls_in(scene, "unscale_"):
        same = spot.argument(0, "optimizer")
        if same is None or given is None or same.text != given.text:
            continue
        if not is_called_on(scene, spot, scaler):
            continue
        if spot.node is not call.node and spot.scope.body is call.scope.body:
            if before(scene, spot, call):
                return spot
    return None


def _last_step(scene: Scene, scaler: Any) -> ExprAt | None:
    """The last `scaler.step(…)`: an update comes after all of them."""
    steps = [s for s in calls_in(scene, "step") if is_called_on(scene, s, scaler)]
    sources = {id(s.scope.source) for s in steps}
    return max(steps, key=lambda s: s.node.lineno) if len(sources) == 1 else None
