"""A plain tensor was assigned where a module has a parameter."""

import ast
from dataclasses import dataclass
from typing import Any

import torch

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import local, tensor_fact
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Role

PATTERNS = ("parameter-assign-tensor",)

EXAMPLE = {
    "place": "In[2]:2",
    "parameter": "layer.weight",
    "value": "torch.eye(3)",
    "module": "Linear",
    "optimizer": "optimizer",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    target: str
    value: str  #: as written; "" where a copy of it would not do
    held: bool  #: an optimizer goes on stepping the old one


def diagnose(scene: Scene) -> Finding[Details] | None:
    module: Any = local(scene, "__setattr__", "self", "torch/nn/modules/module.py")
    name: Any = local(scene, "__setattr__", "name", "torch/nn/modules/module.py")
    value: Any = local(scene, "__setattr__", "value", "torch/nn/modules/module.py")
    if not isinstance(module, torch.nn.Module) or not isinstance(value, torch.Tensor):
        return None
    parameter = module._parameters.get(str(name))
    target, text = _assignment(scene, str(name))
    holders = () if parameter is None else scene.names.holders(parameter)
    fact = tensor_fact(scene, parameter, target)
    same = parameter is not None and parameter.shape == value.shape
    computed = value.requires_grad and not value.is_leaf
    return finding_from_message(
        scene,
        "parameter_replaced_by_tensor",
        EXAMPLE,
        facts={
            "parameter": target or (fact.names[0] if fact.names else str(name)),
            "value": text,
            "module": type(module).__name__,
            "optimizer": holders[0][0] if holders else "",
        },
        at=scene.surfaced,
        variant="computed" if computed else ("held" if holders else ""),
        confidence=Confidence.PROVEN,
        tensors=(fact, tensor_fact(scene, value, text, role=Role.OTHER)),
    ).with_details(
        Details(
            target or (fact.names[0] if fact.names else str(name)),
            "" if computed else text,
            held=bool(same and holders),
        )
    )


def _assignment(scene: Scene, name: str) -> tuple[str, str]:
    """Target and value of the failing assignment, as written; "" where it is no plain one."""
    place = scene.place
    statement = scene.program.statement_at(place)
    source = None if place is None else scene.program.source_at(place)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or source is None:
        return "", ""
    target = statement.targets[0]
    if not isinstance(target, ast.Attribute) or target.attr != name:
        return "", ""
    segment = source.segment(statement.value)
    return ast.unparse(target), segment or ast.unparse(statement.value)
