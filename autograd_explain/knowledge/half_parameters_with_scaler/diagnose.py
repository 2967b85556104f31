"""A GradScaler met gradients in half precision: the parameters themselves were converted."""

import ast
from dataclasses import dataclass
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import (
    calls_in,
    live_value,
    local,
    tensor_fact,
)
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = ("gradscaler-unscale-fp16",)

EXAMPLE = {
    "place": "In[1]:5",
    "tensor": "net.weight",
    "cast": "nn.Linear(4, 1).half()",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    autocast: bool  #: the program computes in half precision by itself


def diagnose(scene: Scene) -> Finding[Details] | None:
    optimizer: Any = local(scene, "_unscale_grads_", "optimizer", "grad_scaler.py")
    if not isinstance(optimizer, torch.optim.Optimizer):
        return None
    params = [p for g in optimizer.param_groups for p in g["params"]]
    half = next((p for p in params if p.dtype is torch.float16), None)
    if half is None:
        return None
    fact = tensor_fact(scene, half)
    cast = _cast(scene, half)
    return finding_from_message(
        scene,
        "half_parameters_with_scaler",
        EXAMPLE,
        facts={
            "tensor": fact.names[0] if fact.names else "",
            "cast": "" if cast is None else cast.text,
        },
        at=cast,
        confidence=Confidence.PROVEN,
        tensors=(fact,),
    ).with_details(Details(_uses_autocast(scene)))


def _cast(scene: Scene, parameter: torch.Tensor) -> ExprAt | None:
    """`net.half()` or `net.to(torch.float16)` of the module that holds the parameter."""
    found = []
    for spot in calls_in(scene, "half", "to"):
        owner = spot.receiver
        half = isinstance(spot.node, ast.Call) and (
            not spot.node.args or ast.unparse(spot.node.args[-1]).endswith(("float16", "half"))
        )
        if owner is None or not half:
            continue
        value = live_value(scene, owner)
        if isinstance(value, torch.Tensor):
            continue
        fits = isinstance(value, torch.nn.Module) and any(
            p is parameter for p in value.parameters()
        )
        if fits or isinstance(owner.node, ast.Call):
            found.append(spot)
    return found[0] if len(found) == 1 else None


def _uses_autocast(scene: Scene) -> bool:
    return next(calls_in(scene, "autocast"), None) is not None
