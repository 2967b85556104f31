"""Something was assigned to `.grad` that is no gradient of that tensor."""

import ast
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import live_value, tensor_fact
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Role

PATTERNS = (
    "grad-assign-size",
    "grad-assign-dtype",
    "grad-assign-device",
    "grad-assign-not-tensor",
    "grad-assign-device-index",
    "grad-assign-self",
    "grad-assign-different-type",
    "grad-dtype-conflict",
    "grad-dtype-not-dtype",
)

EXAMPLE = {
    "place": "In[2]:3",
    "tensor": "net.weight",
    "value": "torch.from_numpy(direction)",
    "got": "double",
    "expected": "Float",
}


class Mismatch(Enum):
    """In what the value differs from the tensor."""

    DTYPE = "dtype"
    DEVICE = "device"
    NO_TENSOR = "no_tensor"


_MISMATCH = {
    "grad-assign-dtype": Mismatch.DTYPE,
    "grad-assign-device": Mismatch.DEVICE,
    "grad-assign-device-index": Mismatch.DEVICE,
    "grad-assign-not-tensor": Mismatch.NO_TENSOR,
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    tensor: str
    mismatch: Mismatch | None


def diagnose(scene: Scene) -> Finding[Details] | None:
    spot = scene.surfaced
    statement = None if spot is None else scene.slicer.statement(spot)
    if spot is None or not isinstance(statement, ast.Assign):
        return None
    target = next((t for t in statement.targets if getattr(t, "attr", "") in _ATTRIBUTES), None)
    if not isinstance(target, ast.Attribute):
        return None
    owner, value = spot.inside(target.value), spot.inside(statement.value)
    tensor: Any = live_value(scene, owner)
    fact = tensor_fact(scene, tensor, owner.text)
    captures, pattern = scene.match.captures, scene.match.pattern
    got = captures.get("shape", captures.get("dtype", captures.get("device", captures.get("type"))))
    return finding_from_message(
        scene,
        "grad_assigned_wrongly",
        EXAMPLE,
        facts={
            "tensor": owner.text,
            "value": value.text,
            "got": got or "",
            "expected": captures.get("expected", ""),
        },
        at=value,
        variant={"grad-assign-size": "size", "grad-assign-not-tensor": "type"}.get(pattern, ""),
        confidence=Confidence.PROVEN if isinstance(tensor, torch.Tensor) else Confidence.LIKELY,
        tensors=(fact, tensor_fact(scene, live_value(scene, value), value.text, role=Role.OTHER)),
    ).with_details(Details(owner.text, _MISMATCH.get(pattern)))


_ATTRIBUTES = ("grad", "grad_dtype", "_grad")
