"""The learning-rate scheduler stepped before the optimizer did."""

from dataclasses import dataclass
from typing import Any

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import (
    before,
    calls_in,
    failing_call,
    live_value,
)
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Place, Role, TensorFact, label

PATTERNS = ("lr-scheduler-before-optimizer", "lr-scheduler-step-overridden")

EXAMPLE = {
    "place": "In[2]:2",
    "scheduler": "scheduler",
    "optimizer": "optimizer",
    "step": "optimizer.step()",
    "step_place": "In[2]:6",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    step: Place | None


def diagnose(scene: Scene) -> Finding[Details] | None:
    call = failing_call(scene, "step")
    owner = call and call.receiver
    if call is None or owner is None:
        return None
    scheduler: Any = live_value(scene, owner)
    optimizer = getattr(scheduler, "optimizer", MISSING)
    names = [n for n, o in scene.names.optimizers() if o is optimizer]
    steps = [s for s in calls_in(scene, "step") if _steps(scene, s, optimizer)]
    after = [s for s in steps if s.scope.source is call.scope.source and before(scene, call, s)]
    later = min(after, key=lambda s: s.node.lineno, default=None)
    overridden = scene.match.pattern == "lr-scheduler-step-overridden"
    found = None if overridden else later
    # What follows in the same function runs; a step elsewhere may belong to code that never does.
    follows = found is not None and found.scope.body is call.scope.body
    return finding_from_message(
        scene,
        "scheduler_before_optimizer",
        EXAMPLE,
        facts={
            "scheduler": owner.text,
            "optimizer": names[0] if names else "",
            "step": found.text if found is not None and follows else "",
            "step_place": label(scene.place_at(found)) if follows else "",
        },
        at=call,
        variant="overridden" if overridden else ("" if follows else _no_step(scene, steps)),
        confidence=Confidence.PROVEN if found is not None else Confidence.LIKELY,
        tensors=(TensorFact(Role.CULPRIT, (owner.text,)),),
    ).with_details(Details(scene.place_at(found)))


def _steps(scene: Scene, call: ExprAt, optimizer: Any) -> bool:
    """`optimizer.step()` or `scaler.step(optimizer)` of this optimizer."""
    owner, given = call.receiver, call.argument(0, "optimizer")
    return any(s is not None and live_value(scene, s) is optimizer for s in (owner, given))


def _no_step(scene: Scene, steps: list[ExprAt]) -> str:
    """Never stepped, or perhaps skipped by a GradScaler, which found an infinite gradient."""
    scaled = any(s.argument(0, "optimizer") is not None for s in steps)
    return "skipped" if scaled else "never"
