"""Gradients were to be clipped, and some of them are infinite or not a number."""

from typing import Any

import torch

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import failing_call, tensor_fact
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = ("clip-grad-nonfinite",)

EXAMPLE = {
    "place": "In[2]:3",
    "tensor": "net.weight",
    "count": "1",
    "kind": "inf",
    "order": "2.0",
}


def diagnose(scene: Scene) -> Finding | None:
    found: dict[int, tuple[str, torch.Tensor]] = {}
    for named in scene.names.tensors:
        if _gradient(named.tensor) is not None:
            found.setdefault(id(named.tensor), (named.name, named.tensor))
    name, tensor = next(iter(found.values()), ("", None))
    grad: Any = None if tensor is None else _gradient(tensor)
    return finding_from_message(
        scene,
        "nonfinite_gradients",
        EXAMPLE,
        facts={
            "tensor": name,
            "count": str(len(found)),
            "kind": "" if grad is None else ("nan" if bool(grad.isnan().any()) else "inf"),
            "order": scene.match.captures.get("order", ""),
        },
        at=failing_call(scene),
        confidence=Confidence.PROVEN if found else Confidence.LIKELY,
        tensors=() if tensor is None else (tensor_fact(scene, tensor, name),),
    )


def _gradient(tensor: torch.Tensor) -> torch.Tensor | None:
    """The gradient of a leaf where it is not finite everywhere."""
    if not tensor.is_leaf or tensor.grad is None or tensor.grad.is_sparse:
        return None
    return None if bool(tensor.grad.isfinite().all()) else tensor.grad
