"""An operation was to write its result into `out=` while one of its arguments requires grad."""

import ast
from dataclasses import dataclass

import torch

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import (
    failing_call,
    live_value,
    tensor_fact,
)
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = ("out-requires-grad",)

EXAMPLE = {
    "place": "In[2]:2",
    "call": "torch.mul(x, w, out=buffer)",
    "out": "buffer",
    "op": "mul",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    out: str
    alone: bool  #: the call is a statement
    plain: bool  #: the result can be assigned to the same name: it is no part of another tensor


def diagnose(scene: Scene) -> Finding[Details] | None:
    call = failing_call(scene, scene.match.captures.get("op", "")) or failing_call(scene)
    out = call and call.argument(99, "out")
    if call is None or out is None or not isinstance(call.node, ast.Call):
        return None
    spot = scene.surfaced
    statement = None if spot is None else scene.slicer.statement(spot)
    alone = isinstance(statement, ast.Expr) and statement.value is call.node
    written = live_value(scene, out)
    shared = isinstance(written, torch.Tensor) and written._is_view()
    plain = isinstance(out.node, (ast.Name, ast.Attribute)) and not shared
    fact = tensor_fact(scene, written, out.text)
    return finding_from_message(
        scene,
        "out_argument_with_grad",
        EXAMPLE,
        facts={"call": call.text, "out": out.text, "op": call.called},
        at=call,
        confidence=Confidence.PROVEN,
        tensors=(fact,),
    ).with_details(Details(out.text, alone, plain))
