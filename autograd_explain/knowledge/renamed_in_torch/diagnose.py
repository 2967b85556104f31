"""A name that torch has given up."""

import ast
from dataclasses import dataclass

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import failing_call
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = ("gradscaler-cuda-amp-deprecated", "clip-grad-norm-deprecated")

EXAMPLE = {
    "place": "In[2]:4",
    "old": "torch.nn.utils.clip_grad_norm",
    "new": "torch.nn.utils.clip_grad_norm_",
}

_NEW = {
    "GradScaler": ("torch.cuda.amp.GradScaler", 'torch.amp.GradScaler("cuda")', '"cuda"'),
    "clip_grad_norm": (
        "torch.nn.utils.clip_grad_norm",
        "torch.nn.utils.clip_grad_norm_",
        "",
    ),
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    name: str
    given: str  #: the arguments, with one that the new one wants before all others


def diagnose(scene: Scene) -> Finding[Details] | None:
    call = failing_call(scene, *_NEW)
    if call is None:
        return None
    old, new, first = _NEW[call.called]
    return finding_from_message(
        scene,
        "renamed_in_torch",
        EXAMPLE,
        facts={"old": old, "new": new},
        at=call,
        confidence=Confidence.PROVEN,
    ).with_details(Details(new.partition("(")[0], _arguments(call, first)))


def _arguments(call: ExprAt, first: str) -> str:
    nodes = (*call.node.args, *call.node.keywords) if isinstance(call.node, ast.Call) else ()
    given = (call.scope.source.segment(n) or ast.unparse(n) for n in nodes)
    return ", ".join((first, *given) if first else given)
