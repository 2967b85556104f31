"""A tensor with a graph was handed to another process or another library."""

import ast
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import live_value, local, tensor_fact
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = ("multiprocessing-nonleaf", "dlpack-requires-grad")

EXAMPLE = {
    "place": "In[2]:1",
    "tensor": "scores",
    "use": "received = np.from_dlpack(scores)",
    "node": "AddmmBackward0",
}


def diagnose(scene: Scene) -> Finding | None:
    process = scene.match.pattern == "multiprocessing-nonleaf"
    tensor: Any = (
        local(scene, "reduce_tensor", "tensor", "reductions.py")
        if process
        else local(scene, "__dlpack__", "self", "torch/_tensor.py")
    )
    if not isinstance(tensor, torch.Tensor):
        tensor = None
    shown, place = _shown(scene, tensor), scene.place
    if shown is None and tensor is None:
        return None
    tensor = tensor if tensor is not None else live_value(scene, shown)
    fact = tensor_fact(scene, tensor, "" if shown is None else shown.text)
    return finding_from_message(
        scene,
        "graph_handed_over",
        EXAMPLE,
        facts={
            "tensor": fact.names[0] if fact.names else "",
            "use": "" if place is None else place.source,
            "node": fact.grad_fn or "",
        },
        at=shown,
        variant="process" if process else "",
        confidence=Confidence.PROVEN,
        tensors=(fact,),
    )


def _shown(scene: Scene, tensor: torch.Tensor | None) -> ExprAt | None:
    """The expression of the failing statement that names the tensor."""
    spot = scene.surfaced
    statement = None if spot is None else scene.slicer.statement(spot)
    for node in ast.walk(statement) if statement is not None else ():
        if spot is None or not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            continue
        if not isinstance(node.ctx, ast.Load):
            continue
        value: Any = live_value(scene, spot.inside(node))
        wanted = value is tensor if tensor is not None else _requires(value)
        if wanted:
            return spot.inside(node)
    return None


def _requires(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad
