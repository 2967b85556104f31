"""An optimizer met a sparse gradient that it cannot apply, or a dense one where it wants sparse."""

import ast
from dataclasses import dataclass
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import calls_in, local, tensor_fact
from autograd_explain.inspect.facts.value_names import stored_names
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = (
    "optimizer-adam-sparse-grad",
    "optimizer-rmsprop-sparse-grad",
    "optimizer-sparse-adam-dense-grad",
)

EXAMPLE = {
    "place": "In[1]:10",
    "tensor": "net.words.weight",
    "optimizer": "Adam",
    "maker": "nn.Embedding(50, 8, sparse=True)",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    dense: bool  #: it is the optimizer that wants sparse gradients


def diagnose(scene: Scene) -> Finding[Details] | None:
    optimizer: Any = local(scene, "step", "self")
    if not isinstance(optimizer, torch.optim.Optimizer):
        return None
    dense = scene.match.pattern == "optimizer-sparse-adam-dense-grad"
    params = [p for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
    refused = next((p for p in params if p.grad.is_sparse is not dense), None)
    if refused is None:
        return None
    fact = tensor_fact(scene, refused)
    kind = type(optimizer).__name__
    made = _constructor(scene, kind) if dense else _embedding(scene, fact.names)
    return finding_from_message(
        scene,
        "sparse_gradient_refused",
        EXAMPLE,
        facts={
            "tensor": fact.names[0] if fact.names else "",
            "optimizer": kind,
            "maker": "" if made is None else made.text,
        },
        at=made,
        variant="dense" if dense else "",
        confidence=Confidence.PROVEN,
        tensors=(fact,),
    ).with_details(Details(dense))


def _constructor(scene: Scene, kind: str) -> ExprAt | None:
    found = list(calls_in(scene, kind))
    return found[0] if len(found) == 1 else None


def _embedding(scene: Scene, names: tuple[str, ...]) -> ExprAt | None:
    """The constructor with `sparse=True`; of several the one stored under the module's name."""
    found = [
        spot
        for spot in calls_in(scene, "Embedding", "EmbeddingBag", "from_pretrained")
        if isinstance(spot.node, ast.Call)
        and any(k.arg == "sparse" and _is_true(k.value) for k in spot.node.keywords)
    ]
    if len(found) <= 1:
        return found[0] if found else None
    owners = {name.rsplit(".", 2)[-2] for name in names if name.count(".") >= 1}
    fitting = [s for s in found if owners & {n.rsplit(".", 1)[-1] for n in stored_names(scene, s)}]
    return fitting[0] if len(fitting) == 1 else None


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True
