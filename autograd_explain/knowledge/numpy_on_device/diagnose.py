"""NumPy was given a tensor that does not lie in the memory of the CPU."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.expressions import method_call
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import live_value, local, maker, tensor_fact
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = ("numpy-other-device",)

EXAMPLE = {
    "place": "In[1]:4",
    "tensor": "grid",
    "device": "meta",
    "read": "rows = grid.numpy()",
    "maker": 'torch.ones(3, 2, device="meta")',
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    meta: bool  #: there is no data
    placed: bool  #: the cause is what put the tensor there
    called: bool  #: on the tensor itself
    graph: bool


def diagnose(scene: Scene) -> Finding[Details] | None:
    shown, called = _shown(scene)
    tensor: Any = live_value(scene, shown)
    if not isinstance(tensor, torch.Tensor):
        tensor = local(scene, "__array__", "self", "torch/_tensor.py")
    device = tensor.device.type if isinstance(tensor, torch.Tensor) else ""
    device = device or scene.match.captures.get("device", "")
    if shown is None or device == "cpu":
        return None
    made, place = maker(scene, shown), scene.place
    meta = device == "meta"
    placed = meta and made is not None and _has_device(made)
    graph = isinstance(tensor, torch.Tensor) and tensor.requires_grad
    fact = tensor_fact(scene, tensor, shown.text)
    return finding_from_message(
        scene,
        "numpy_on_device",
        EXAMPLE,
        facts={
            "tensor": fact.names[0] if fact.names else shown.text,
            "device": device,
            "read": "" if place is None else place.source,
            "maker": "" if made is None else made.text,
        },
        at=made if placed else shown,
        variant="meta" if meta else "",
        confidence=Confidence.PROVEN if isinstance(tensor, torch.Tensor) else Confidence.LIKELY,
        tensors=(fact,),
    ).with_details(Details(meta, placed, called, graph))


def _shown(scene: Scene) -> tuple[ExprAt | None, bool]:
    """`x` of `x.numpy()`, or the one argument that lies on another device; whether the first."""
    direct = method_call(scene, "numpy")
    if direct is not None:
        return direct, True
    found = list(_elsewhere(scene))
    return (found[0] if len({s.text for s in found}) == 1 else None), False


def _elsewhere(scene: Scene) -> Iterator[ExprAt]:
    spot = scene.surfaced
    statement = None if spot is None else scene.slicer.statement(spot)
    for node in ast.walk(statement) if statement is not None else ():
        if spot is not None and isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            value: Any = live_value(scene, spot.inside(node))
            if isinstance(value, torch.Tensor) and value.device.type != "cpu":
                yield spot.inside(node)


def _has_device(made: ExprAt) -> bool:
    return isinstance(made.node, ast.Call) and any(k.arg == "device" for k in made.node.keywords)
