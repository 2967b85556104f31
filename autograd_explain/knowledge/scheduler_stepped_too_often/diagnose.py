"""OneCycleLR was stepped more often than its schedule is long."""

from dataclasses import dataclass
from typing import Any

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import (
    calls_in,
    failing_call,
    is_called_on,
    live_value,
)
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Role, TensorFact, label

PATTERNS = ("lr-scheduler-onecycle-steps",)

EXAMPLE = {
    "place": "In[2]:9",
    "scheduler": "scheduler",
    "total": "6",
    "other": "scheduler.step()",
    "other_place": "In[2]:8",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    extra: bool  #: of two steps one is too many


def diagnose(scene: Scene) -> Finding[Details] | None:
    call = failing_call(scene, "step")
    owner = call and call.receiver
    if call is None or owner is None:
        return None
    steps = _steps(scene, live_value(scene, owner))
    outer = _outer(scene, steps)
    inner = next((s for s in steps if outer is not None and s.node is not outer.node), None)
    return finding_from_message(
        scene,
        "scheduler_stepped_too_often",
        EXAMPLE,
        facts={
            "scheduler": owner.text,
            "total": scene.match.captures.get("total", ""),
            "other": "" if inner is None else inner.text,
            "other_place": label(scene.place_at(inner)),
        },
        at=outer or call,
        variant="" if outer is not None else "short",
        confidence=Confidence.PROVEN if outer is not None else Confidence.LIKELY,
        tensors=(TensorFact(Role.CULPRIT, (owner.text,)),),
    ).with_details(Details(extra=outer is not None))


def _steps(scene: Scene, scheduler: Any) -> list[ExprAt]:
    return [spot for spot in calls_in(scene, "step") if is_called_on(scene, spot, scheduler)]


def _outer(scene: Scene, steps: list[ExprAt]) -> ExprAt | None:
    """Of two steps, one in the loop over batches and one in the loop around it, the outer one."""
    if len(steps) != 2 or steps[0].scope.source is not steps[1].scope.source:
        return None
    depth = [
        sum(1 for a in scene.slicer.index(s.scope.source).ancestors(s.node) if _is_loop(a))
        for s in steps
    ]
    return None if depth[0] == depth[1] else steps[depth.index(min(depth))]


def _is_loop(node: object) -> bool:
    return type(node).__name__ in ("For", "While", "AsyncFor")
