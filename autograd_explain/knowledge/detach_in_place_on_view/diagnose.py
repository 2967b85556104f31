"""`detach_()` of a view."""

from typing import Any

import torch

from autograd_explain.inspect.facts.expressions import method_call
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import live_value, maker, tensor_fact
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, What, label

PATTERNS = ("detach-view-inplace",)

EXAMPLE = {
    "place": "In[2]:3",
    "tensor": "first",
    "maker": "hidden[:, 0]",
    "maker_place": "In[2]:2",
}


def diagnose(scene: Scene) -> Finding | None:
    shown = method_call(scene, "detach_")
    if shown is None:
        return None
    tensor: Any = live_value(scene, shown)
    made = maker(scene, shown)
    fact = tensor_fact(scene, tensor if isinstance(tensor, torch.Tensor) else None, shown.text)
    return finding_from_message(
        scene,
        "detach_in_place_on_view",
        EXAMPLE,
        facts={
            "tensor": shown.text,
            "maker": "" if made is None else made.text,
            "maker_place": label(scene.place_at(made)),
        },
        at=shown,
        variant="gradient" if shown.text.endswith(".grad") else "",
        confidence=Confidence.PROVEN,
        tensors=(fact,),
        more=() if made is None else (scene.event_at(What.CREATED, made),),
    )
