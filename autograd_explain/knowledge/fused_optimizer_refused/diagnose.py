"""`fused=True` where the fused kernels do not reach."""

import ast
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import calls_in, failing_call, local, tensor_fact
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = (
    "optimizer-fused-unsupported",
    "optimizer-fused-foreach",
    "optimizer-fused-differentiable",
)

EXAMPLE = {
    "place": "In[1]:5",
    "optimizer": "torch.optim.Adam([phases], lr=0.1, fused=True)",
    "tensor": "phases",
    "dtype": "complex64",
    "device": "cpu",
}


def diagnose(scene: Scene) -> Finding | None:
    made = _constructor(scene)
    parameter = _unsupported(scene)
    fact = None if parameter is None else tensor_fact(scene, parameter)
    return finding_from_message(
        scene,
        "fused_optimizer_refused",
        EXAMPLE,
        facts={
            "optimizer": "" if made is None else made.text,
            "tensor": fact.names[0] if fact is not None and fact.names else "",
            "dtype": (fact.dtype or "") if fact is not None else "",
            "device": (fact.device or "") if fact is not None else "",
        },
        at=made,
        variant="" if scene.match.pattern == "optimizer-fused-unsupported" else "options",
        confidence=Confidence.PROVEN if made is not None else Confidence.LIKELY,
        tensors=() if fact is None else (fact,),
    )


def _constructor(scene: Scene) -> ExprAt | None:
    """The call that asked for the fused optimizer: the failing one, or the only one."""
    call = failing_call(scene)
    if call is not None and _fused(call.node):
        return call
    names = [n for n in dir(torch.optim) if isinstance(getattr(torch.optim, n), type)]
    found = [s for s in calls_in(scene, *names) if _fused(s.node)]
    return found[0] if len(found) == 1 else None


def _fused(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and any(k.arg == "fused" for k in node.keywords)


def _unsupported(scene: Scene) -> torch.Tensor | None:
    """The parameter that the fused step does not take."""
    for function in ("step", "__init__"):
        optimizer: Any = local(scene, function, "self")
        if isinstance(optimizer, torch.optim.Optimizer):
            groups = getattr(optimizer, "param_groups", ())
            params = [p for group in groups for p in group["params"]]
            return next((p for p in params if not p.is_floating_point() or p.is_meta), None)
    return None
