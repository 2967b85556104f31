"""Python asked a tensor that requires grad for a number."""

import ast
from dataclasses import dataclass
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.only_way import is_only_way
from autograd_explain.inspect.facts.torch_call import (
    failing_call,
    live_value,
    tensor_fact,
)
from autograd_explain.inspect.facts.value_names import read_with_gradient
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Confidence, Finding, Place

_DISPLAYS = (ast.List, ast.Tuple, ast.ListComp)

PATTERNS = ("scalar-conversion-warning",)

EXAMPLE = {
    "place": "In[2]:6",
    "tensor": "loss",
    "call": "float(loss)",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    given: Place | None
    is_float: bool
    is_list: bool
    is_mixed: bool = False  #: a list that a name stands for holds other things than tensors, too
    goes_on: bool = False  #: a loss depends on the tensor by the number, and in no other way


def diagnose(scene: Scene) -> Finding[Details] | None:
    call = failing_call(scene)
    given = call and call.argument(0)
    if call is None or given is None:
        return None
    value: Any = live_value(scene, given)
    tensor = value if isinstance(value, torch.Tensor) else None
    if tensor is not None and not tensor.requires_grad:
        return None
    many = _is_list(scene, given, value)
    mixed = isinstance(value, (list, tuple)) and not all(is_a(v, torch.Tensor) for v in value)
    number = isinstance(call.node, ast.Call) and getattr(call.node.func, "id", "") == "float"
    fact = tensor_fact(scene, tensor, given.text, *read_with_gradient(scene, given))
    return finding_from_message(
        scene,
        "scalar_conversion",
        EXAMPLE,
        facts={"tensor": given.text, "call": call.text},
        at=call,
        variant="list" if many else "",
        confidence=Confidence.PROVEN,
        tensors=(fact,),
    ).with_details(
        Details(
            scene.place_at(given),
            is_float=number,
            is_list=many,
            is_mixed=mixed and not isinstance(given.node, _DISPLAYS),
            goes_on=not many and is_only_way(scene, call, given) is True,
        )
    )


def _is_list(scene: Scene, given: ExprAt, value: Any) -> bool:
    """Whether a list of tensors is converted, written there or made before under a name."""
    if isinstance(given.node, _DISPLAYS) or isinstance(value, (list, tuple)):
        return True
    made = [] if value is not MISSING else scene.slicer.makers(given)
    return bool(made) and all(isinstance(m.node, _DISPLAYS) for m in made)
