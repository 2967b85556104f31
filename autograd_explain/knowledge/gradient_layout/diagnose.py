"""A gradient lies in memory in another order than its parameter."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import tensor_fact
from autograd_explain.inspect.live.shapes import shown_shape
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = ("grad-layout-contract",)

EXAMPLE = {
    "place": "In[2]:2",
    "tensor": "w",
    "shape": "[2, 3]",
    "strides": "[1, 2]",
    "expected": "[3, 1]",
}


def diagnose(scene: Scene) -> Finding | None:
    captures = scene.match.captures
    strides, shape = captures.get("strides", ""), captures.get("shape", "")
    named = next(
        (
            n
            for n in scene.names.tensors
            if n.tensor.is_leaf
            and n.tensor.grad is not None
            and str(list(n.tensor.grad.stride())) == strides
            and shown_shape(n.tensor) == shape
        ),
        None,
    )
    return finding_from_message(
        scene,
        "gradient_layout",
        EXAMPLE,
        facts={
            "tensor": "" if named is None else named.name,
            "shape": shape,
            "strides": strides,
            "expected": captures.get("param_strides", _own(named)),
        },
        at=None,
        confidence=Confidence.PROVEN if named is not None else Confidence.LIKELY,
        tensors=() if named is None else (tensor_fact(scene, named.tensor, named.name),),
    )


def _own(named: object) -> str:
    tensor = getattr(named, "tensor", None)
    return "" if tensor is None else str(list(tensor.stride()))
