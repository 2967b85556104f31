"""A parameter stands twice among those that an optimizer was given."""

import ast
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import (
    elements,
    failing_call,
    local,
    tensor_fact,
)
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Place

PATTERNS = ("optimizer-param-in-two-groups", "optimizer-param-group-duplicate")

EXAMPLE = {
    "place": "In[2]:2",
    "tensor": "net.head.weight",
    "count": "2",
    "first": "net.parameters()",
    "second": "net.head.parameters()",
}


class Overlap(Enum):
    """How the groups come to share a parameter."""

    SAME_LIST = "same_list"  #: one list holds it twice
    WITHIN = "within"  #: the second module is a part of the first
    OTHER = "other"


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    overlap: Overlap | None
    first: str
    second: str
    refused: Place | None


def diagnose(scene: Scene) -> Finding[Details] | None:
    call = failing_call(scene)
    group: Any = local(scene, "add_param_group", "param_group", "torch/optim/optimizer.py")
    optimizer: Any = local(scene, "add_param_group", "self", "torch/optim/optimizer.py")
    if not isinstance(group, dict):
        group = _given_list(scene)
    if call is None or group is None:
        return None
    before = [list(g["params"]) for g in getattr(optimizer, "param_groups", ())]
    own = list(group.get("params", ()))
    once = _twice(own)
    shared = once or [p for p in own if any(p is q for g in before for q in g)]
    given = call.argument(0, "params", "param_group")
    if not shared or given is None:
        return None
    first, second = (given, given) if once else _groups(scene, given, before, shared[0])
    fact = tensor_fact(scene, shared[0])
    return finding_from_message(
        scene,
        "parameter_in_two_groups",
        EXAMPLE,
        facts={
            "tensor": fact.names[0] if fact.names else "",
            "count": str(len({id(p) for p in shared})),
            "first": "" if first is None else first.text,
            "second": "" if second is None else second.text,
        },
        at=first or given,
        variant="duplicate" if once else "",
        confidence=Confidence.PROVEN,
        tensors=(fact,),
    ).with_details(
        Details(
            _overlap(once, first, second),
            "" if first is None else first.text,
            "" if second is None else second.text,
            scene.place_at(second),
        )
    )


def _given_list(scene: Scene) -> dict[str, Any] | None:
    """What the constructor was given: of a warning only the outer frames are there."""
    params: Any = local(scene, "__init__", "params", ".py")
    tensors = isinstance(params, list) and all(isinstance(p, torch.Tensor) for p in params)
    return {"params": params} if tensors else None


def _twice(params: list[Any]) -> list[torch.Tensor]:
    seen: set[int] = set()
    return [p for p in params if id(p) in seen or seen.add(id(p))]  # type: ignore[func-returns-value]


def _groups(
    scene: Scene, given: ExprAt, before: list[list[Any]], shared: torch.Tensor
) -> tuple[ExprAt | None, ExprAt | None]:
    """The expressions of the earlier group with the parameter, and of the refused one."""
    groups = [_params(g) for g in elements(scene, given)]
    earlier = next((i for i, g in enumerate(before) if any(p is shared for p in g)), 0)
    if len(before) >= len(groups) or groups[earlier] is None:
        return None, None
    return groups[earlier], groups[len(before)]


def _params(group: ExprAt) -> ExprAt | None:
    if isinstance(group.node, ast.Dict):
        for key, value in zip(group.node.keys, group.node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "params":
                return group.inside(value)
    if isinstance(group.node, ast.Call):
        return next((group.inside(k.value) for k in group.node.keywords if k.arg == "params"), None)
    return None


def _overlap(
    once: list[torch.Tensor], first: ExprAt | None, second: ExprAt | None
) -> Overlap | None:
    if once:
        return Overlap.SAME_LIST
    if first is None or second is None:
        return None
    outer, inner = _owner(first), _owner(second)
    return Overlap.WITHIN if outer and inner.startswith(f"{outer}.") else Overlap.OTHER


def _owner(spot: ExprAt) -> str:
    """`net.head` of `net.head.parameters()`"""
    node = spot.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        return ast.unparse(node.func.value) if node.func.attr == "parameters" else ""
    return ""
