"""An optimizer was given a tensor that is the result of an operation."""

import torch

from autograd_explain.inspect.attribution import label
from autograd_explain.inspect.non_leaf import NonLeaf, analyse, events, fact
from autograd_explain.inspect.optimizer_call import refused_parameter
from autograd_explain.inspect.origin import place_of
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = ("optimizer-nonleaf",)

EXAMPLE = {
    "tensor": "prompt.tokens",
    "maker": "torch.randn(length, width, requires_grad=True) * 0.02",
    "place": "In[1]:8",
    "leaf": "",
    "node": "MulBackward0",
}


def diagnose(scene: Scene) -> Finding | None:
    refused = refused_parameter(scene)
    if refused is None:
        return None
    found = analyse(scene, refused.tensor, refused.shown)
    culprit = fact(scene, found)
    maker = found.maker
    return Finding(
        cause="non_leaf_in_optimizer",
        confidence=Confidence.PROVEN,
        facts={
            "tensor": culprit.names[0] if culprit.names else "",
            "maker": "" if maker is None else maker.text,
            "place": "" if maker is None else label(place_of(scene, maker)),
            "leaf": found.leaf_names[0] if found.leaf_names else "",
            "node": culprit.grad_fn or "",
        },
        tensors=(culprit,),
        events=(*events(scene, found, culprit.grad_fn), scene.failed()),
        variant=_variant(found),
    )


def _variant(found: NonLeaf) -> str:
    if isinstance(found.leaf, torch.nn.Parameter) and found.leaf_names:
        return "parameter"
    return ""
