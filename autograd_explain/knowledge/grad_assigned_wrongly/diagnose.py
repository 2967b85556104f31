"""Something was assigned to `.grad` that is no gradient of that tensor."""

import ast
from typing import Any

import torch

from autograd_explain.inspect.facts.expressions import inside, surfaced
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

_HOW = {
    "grad-assign-dtype": "dtype",
    "grad-assign-device": "device",
    "grad-assign-device-index": "device",
    "grad-assign-not-tensor": "none",
}


def diagnose(scene: Scene) -> Finding | None:
    spot = surfaced(scene)
    statement = None if spot is None else scene.slicer.statement(spot)
    if spot is None or not isinstance(statement, ast.Assign):
        return None
    target = next((t for t in statement.targets if getattr(t, "attr", "") in _ATTRIBUTES), None)
    if not isinstance(target, ast.Attribute):
        return None
    owner, value = inside(spot, target.value), inside(spot, statement.value)
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
        op=_HOW.get(pattern),
        variant={"grad-assign-size": "size", "grad-assign-not-tensor": "type"}.get(pattern, ""),
        confidence=Confidence.PROVEN if isinstance(tensor, torch.Tensor) else Confidence.LIKELY,
        tensors=(fact, tensor_fact(scene, live_value(scene, value), value.text, role=Role.OTHER)),
    )


_ATTRIBUTES = ("grad", "grad_dtype", "_grad")
