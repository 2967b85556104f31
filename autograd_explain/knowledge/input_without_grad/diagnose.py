"""`torch.autograd.grad` was asked for the gradient of a tensor that does not require grad."""

import ast

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.cut_kinds import makes_leaf
from autograd_explain.inspect.facts.expressions import stored_names
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import (
    argument,
    differentiated,
    elements,
    failing_call,
    maker,
    tensor_fact,
)
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding
from autograd_explain.program import called_name

PATTERNS = ("grad-of-nongrad-input",)

EXAMPLE = {
    "place": "In[1]:4",
    "tensor": "t",
    "index": "1",
    "maker": "torch.linspace(0, 1, 5)",
    "all": "[x, t]",
}


def diagnose(scene: Scene) -> Finding | None:
    found = _first(scene)
    if found is None:
        return None
    index, tensor = found
    given = argument(failing_call(scene, "grad", "backward"), 1, "inputs")
    listed = [] if given is None else elements(scene, given)
    shown = listed[index] if index < len(listed) else None
    if shown is given and isinstance(tensor, torch.nn.Parameter):
        shown = None
    made = maker(scene, shown)
    fact = tensor_fact(scene, tensor, "" if shown is None else shown.text)
    frozen = isinstance(tensor, torch.nn.Parameter)
    return finding_from_message(
        scene,
        "input_without_grad",
        EXAMPLE,
        facts={
            "tensor": fact.names[0] if fact.names else "",
            "index": str(index),
            "maker": "" if made is None else made.text,
            "all": "" if given is None else given.text,
        },
        at=given if frozen or made is None else made,
        op=_op(scene, frozen, made),
        variant="frozen" if frozen else "",
        confidence=Confidence.PROVEN,
        tensors=(fact,),
    )


def _first(scene: Scene) -> tuple[int, torch.Tensor] | None:
    for i, tensor in enumerate(differentiated(scene)):
        if isinstance(tensor, torch.Tensor) and not tensor.requires_grad:
            return i, tensor
    return None


def _op(scene: Scene, frozen: bool, made: ExprAt | None) -> str:
    """What can be done at the cause: filter the parameters, or ask for the gradient in time."""
    if frozen:
        return "filter"
    if made is None:
        return "unknown"
    if isinstance(made.node, ast.Call) and called_name(made.node) in ("detach", "detach_"):
        return "detached"
    if makes_leaf(made.node) or stored_names(scene, made):
        return "leaf"
    return "unknown"
