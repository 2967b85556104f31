"""`retain_grad()` of a tensor that does not require grad."""

from dataclasses import dataclass
from typing import Any

import torch

from autograd_explain.inspect.dataflow import best_cut
from autograd_explain.inspect.facts.expressions import method_call
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import live_value, maker, tensor_fact
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, What

PATTERNS = ("retain-grad-not-required",)

EXAMPLE = {
    "place": "In[2]:1",
    "tensor": "image",
    "maker": "torch.rand(1, 8)",
    "cut": "",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    tensor: str
    uncut: bool  #: the tensor can be asked for its gradient


def diagnose(scene: Scene) -> Finding[Details] | None:
    shown = method_call(scene, "retain_grad")
    tensor: Any = live_value(scene, shown)
    if shown is None or (isinstance(tensor, torch.Tensor) and tensor.requires_grad):
        return None
    made = maker(scene, shown)
    cut = best_cut(scene.gradient_tracer.trace(shown).cuts)
    fact = tensor_fact(scene, tensor, shown.text)
    floating = not isinstance(tensor, torch.Tensor) or tensor.is_floating_point()
    return finding_from_message(
        scene,
        "retain_grad_without_grad",
        EXAMPLE,
        facts={
            "tensor": shown.text,
            "maker": "" if made is None else made.text,
            "cut": "" if cut is None else cut.spot.text,
        },
        at=shown if cut is None else cut.spot,
        variant="" if cut is None else "cut",
        confidence=Confidence.PROVEN,
        tensors=(fact,),
        more=() if made is None else (scene.event_at(What.CREATED, made),),
    ).with_details(Details(shown.text, uncut=cut is None and floating))
