"""A loss was computed from two dtypes, and its backward cannot mix them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from autograd_explain.arguments import values_given
from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import backward_roots, live_value, maker, tensor_fact
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, What

PATTERNS = ("found-dtype",)

EXAMPLE = {
    "place": "In[2]:3",
    "tensor": "targets",
    "dtype": "float64",
    "wanted": "float32",
    "loss": "nn.functional.huber_loss(net(x).squeeze(1), targets)",
    "maker": "torch.from_numpy(np.linspace(0, 1, 8))",
}

_DTYPES = {
    "Double": torch.float64,
    "Float": torch.float32,
    "Half": torch.float16,
    "BFloat16": torch.bfloat16,
    "Long": torch.int64,
    "Int": torch.int32,
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    wanted: str


def diagnose(scene: Scene) -> Finding[Details] | None:
    captures = scene.match.captures
    found = _DTYPES.get(captures.get("dtype", "").rstrip("."))
    wanted = _DTYPES.get(captures.get("expected", "").rstrip("."))
    if found is None or wanted is None:
        return None
    spots = list(_mixed(scene, found))
    shown, loss = spots[0] if spots else (None, None)
    made = maker(scene, shown)
    fact = tensor_fact(scene, live_value(scene, shown), "" if shown is None else shown.text)
    return finding_from_message(
        scene,
        "loss_dtype_mismatch",
        EXAMPLE,
        facts={
            "tensor": "" if shown is None else shown.text,
            "dtype": _name(found),
            "wanted": _name(wanted),
            "loss": "" if loss is None else loss.text,
            "maker": "" if made is None else made.text,
        },
        at=shown,
        confidence=Confidence.PROVEN if len(spots) == 1 else Confidence.LIKELY,
        tensors=(fact,),
        more=() if loss is None else (scene.event_at(What.CREATED, loss),),
    ).with_details(Details(_name(wanted)))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _mixed(scene: Scene, dtype: torch.dtype) -> Iterator[tuple[ExprAt, ExprAt]]:
    """The arguments of this dtype that carry no gradient, of the calls the loss came from."""
    slicer = scene.slicer
    roots = backward_roots(scene)
    seen: set[int] = set()
    for call in computation(scene, roots[0]) if roots else ():
        if not isinstance(call.node, ast.Call):
            continue
        for node in values_given(call.node):
            spot = call.inside(node)
            value: Any = slicer.value(spot)
            if isinstance(value, torch.Tensor) and value.dtype is dtype:
                if not value.requires_grad and id(value) not in seen:
                    seen.add(id(value))
                    yield spot, call
