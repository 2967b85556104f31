"""A scheduler was made with `last_epoch`, for an optimizer that knows no initial rate."""

import ast
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
from autograd_explain.model import Confidence, Finding, Place, Role, TensorFact

PATTERNS = ("lr-scheduler-initial-lr",)

EXAMPLE = {
    "place": "In[2]:2",
    "optimizer": "optimizer",
    "last": "start",
    "load": "",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    optimizer: str
    load: Place | None  #: the state is loaded, but later
    fresh: bool  #: nothing is resumed


def diagnose(scene: Scene) -> Finding[Details] | None:
    call = failing_call(scene)
    optimizer = call and call.argument(0, "optimizer")
    last = call and call.argument(99, "last_epoch")
    if call is None or optimizer is None:
        return None
    load = _load(scene, call, live_value(scene, optimizer))
    fresh = last is not None and isinstance(last.node, ast.Constant)
    return finding_from_message(
        scene,
        "scheduler_resumed_without_state",
        EXAMPLE,
        facts={
            "optimizer": optimizer.text,
            "last": "" if last is None else last.text,
            "load": "" if load is None else load.text,
        },
        at=call,
        variant="order" if load is not None else "",
        confidence=Confidence.PROVEN,
        tensors=(TensorFact(Role.CULPRIT, (optimizer.text,)),),
    ).with_details(Details(optimizer.text, scene.place_at(load), fresh))


def _load(scene: Scene, call: ExprAt, optimizer: Any) -> ExprAt | None:
    """`optimizer.load_state_dict(…)` that stands behind the failing line."""
    for spot in calls_in(scene, "load_state_dict"):
        if spot.scope.source is call.scope.source and before(scene, call, spot):
            if is_called_on(scene, spot, optimizer):
                return spot
    return None
