"""An optimizer got an empty parameter list."""

import ast
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import failing_call, live_value, maker
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Role, TensorFact, label
from autograd_explain.program import called_name

PATTERNS = ("optimizer-empty",)

EXAMPLE = {
    "place": "In[1]:10",
    "given": "net.parameters()",
    "given_place": "In[2]:2",
    "module": "Stack",
    "attribute": "self.layers",
    "maker": "[nn.Linear(4, 4) for _ in range(depth)]",
}


class Why(Enum):
    """Why there is nothing; also the variant of the texts."""

    PLAIN_LIST = "plain_list"
    PLAIN_TENSOR = "plain_tensor"
    FROZEN = "frozen"
    USED_UP = "used_up"
    UNKNOWN = ""


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    why: Why
    attribute: str


def diagnose(scene: Scene) -> Finding[Details] | None:
    call = failing_call(scene)
    given = call and call.argument(0, "params")
    if given is None:
        return None
    made = maker(scene, given) or given
    owner = _module(scene, made)
    why, cause, attribute = _why(scene, given, made, owner)
    return finding_from_message(
        scene,
        "optimizer_given_nothing",
        EXAMPLE,
        facts={
            "given": given.text,
            "given_place": label(scene.place_at(given)),
            "module": "" if owner is None else type(owner).__name__,
            "attribute": attribute,
            "maker": "" if cause is None else cause.text,
        },
        at=cause or given,
        variant=why.value,
        confidence=Confidence.PROVEN if why is not Why.UNKNOWN else Confidence.LIKELY,
        tensors=(TensorFact(Role.CULPRIT, (attribute or given.text,)),),
    ).with_details(Details(why, attribute))


def _module(scene: Scene, made: ExprAt) -> torch.nn.Module | None:
    """The module whose `parameters()` the expression asks for."""
    for node in ast.walk(made.node):
        if isinstance(node, ast.Call) and called_name(node) in ("parameters", "named_parameters"):
            if isinstance(node.func, ast.Attribute):
                value = live_value(scene, made.inside(node.func.value))
                if isinstance(value, torch.nn.Module):
                    return value
    return None


def _why(
    scene: Scene, given: ExprAt, made: ExprAt, owner: torch.nn.Module | None
) -> tuple[Why, ExprAt | None, str]:
    """Why, the statement's value to change, and the attribute it is stored in."""
    if owner is None:
        return Why.UNKNOWN, None, ""
    if next(owner.parameters(), None) is not None:
        if "requires_grad" in made.text:
            return Why.FROZEN, None, ""
        used_up = made.node is not given.node and isinstance(given.node, ast.Name)
        return (Why.USED_UP, made, given.text) if used_up else (Why.UNKNOWN, None, "")
    for kind, test in ((Why.PLAIN_LIST, _holds_modules), (Why.PLAIN_TENSOR, _wants_gradient)):
        for module in owner.modules():
            for name, value in vars(module).items():
                stores = scene.slicer.stores(module, name) if test(value) else []
                stores = [s for s in stores if isinstance(s.node, (ast.expr))]
                if stores:
                    return kind, stores[-1], f"self.{name}"
    return Why.UNKNOWN, None, ""


def _holds_modules(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    return type(value) in (list, tuple) and any(isinstance(v, torch.nn.Module) for v in value)


def _wants_gradient(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad
