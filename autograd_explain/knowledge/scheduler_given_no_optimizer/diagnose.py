"""A learning-rate scheduler got something else than an optimizer."""

from dataclasses import dataclass
from typing import Any

import torch

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import failing_call, live_value
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Role, TensorFact

PATTERNS = ("lr-scheduler-not-optimizer",)

EXAMPLE = {
    "place": "In[2]:1",
    "given": "net",
    "type": "Linear",
    "optimizer": "optimizer",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    optimizer: str  #: the one that is meant


def diagnose(scene: Scene) -> Finding[Details] | None:
    call = failing_call(scene)
    given = call and call.argument(0, "optimizer")
    if given is None:
        return None
    value: Any = live_value(scene, given)
    fitting = [name for name, found in scene.names.optimizers() if _belongs(found, value)]
    kind = scene.match.captures.get("type", "")
    return finding_from_message(
        scene,
        "scheduler_given_no_optimizer",
        EXAMPLE,
        facts={
            "given": given.text,
            "type": kind or type(value).__name__,
            "optimizer": fitting[0] if len(fitting) == 1 else "",
        },
        at=given,
        variant="known" if len(fitting) == 1 else "",
        confidence=Confidence.PROVEN,
        tensors=(TensorFact(Role.CULPRIT, (given.text,)),),
    ).with_details(Details(fitting[0] if len(fitting) == 1 else ""))


def _belongs(optimizer: torch.optim.Optimizer, value: Any) -> bool:
    """An optimizer of the module that was given; of anything else any optimizer."""
    inner = getattr(value, "optimizer", None)
    if isinstance(inner, torch.optim.Optimizer):
        return inner is optimizer
    if not isinstance(value, torch.nn.Module):
        return True
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    return any(id(p) in held for p in value.parameters())
