"""A lazy parameter was used before a forward pass had given it a shape."""

from typing import Any

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import failing_call
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Role, TensorFact

PATTERNS = ("uninitialized-parameter",)

EXAMPLE = {
    "place": "In[2]:1",
    "parameter": "net[0].weight",
    "line": "size = sum(p.abs().sum() for p in net.parameters())",
    "kind": "UninitializedParameter",
}


def diagnose(scene: Scene) -> Finding | None:
    from torch.nn.parameter import is_lazy

    names = [n.name for n in scene.names.tensors if is_lazy(n.tensor)]
    kind: Any = scene.match.captures.get("class", "")
    return finding_from_message(
        scene,
        "lazy_parameter",
        EXAMPLE,
        facts={
            "parameter": names[0] if names else "",
            "kind": kind,
        },
        at=failing_call(scene),
        confidence=Confidence.PROVEN if names else Confidence.LIKELY,
        tensors=(TensorFact(Role.CULPRIT, tuple(names[:3])),),
    )
