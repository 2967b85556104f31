"""The `gradient` given to backward (or `grad_outputs` given to grad) does not fit the output."""

from dataclasses import dataclass
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import (
    backward_roots,
    elements,
    failing_call,
    live_value,
    maker,
    tensor_fact,
)
from autograd_explain.inspect.live.shapes import shown_shape
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = (
    "grad-output-shape-mismatch",
    "grad-output-wrong-type",
    "grad-output-complex-dtype",
    "grad-output-batched-shape",
    "grad-lengths-differ",
    "engine-gradient-none",
    "engine-gradient-none-edge",
    "engine-gradient-not-tensor",
)

EXAMPLE = {
    "place": "In[2]:2",
    "given": "torch.ones(3)",
    "root": "y",
    "got": "[3]",
    "expected": "[3, 2]",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    root: str
    ones: bool  #: ones were meant


def diagnose(scene: Scene) -> Finding[Details] | None:
    call = failing_call(scene, "backward", "grad")
    if call is None:
        return None
    index = _number(scene.match.captures.get("index", "0"))
    given = _given(scene, call, index)
    roots = backward_roots(scene)
    root = roots[index] if index < len(roots) else None
    output = scene.roots[index] if index < len(scene.roots) else None
    made = maker(scene, given)
    value: Any = live_value(scene, given)
    captures = scene.match.captures
    got = shown_shape(value) if isinstance(value, torch.Tensor) else captures.get("shape", "")
    batched = scene.match.pattern == "grad-output-batched-shape"
    number = given is not None and scene.match.pattern == "grad-output-wrong-type"
    return finding_from_message(
        scene,
        "output_gradient_mismatch",
        EXAMPLE,
        facts={
            "given": "" if given is None else given.text,
            "root": "" if root is None else root.text,
            "got": got.removeprefix("torch.Size(").removesuffix(")"),
            "expected": "" if output is None else _expected(output, batched),
        },
        at=given or call,
        variant=_variant(scene, number, batched),
        confidence=Confidence.PROVEN
        if given is not None and output is not None
        else Confidence.LIKELY,
        tensors=() if output is None else (tensor_fact(scene, output),),
    ).with_details(
        Details(
            "" if root is None else root.text,
            # Ones in the shape of the output are no batch of them.
            ones=given is not None
            and root is not None
            and (number or (_ones(made) and not batched)),
        )
    )


def _expected(output: torch.Tensor, batched: bool) -> str:
    shape = [str(n) for n in output.shape]
    return f"[{', '.join(['n', *shape] if batched else shape)}]"


def _variant(scene: Scene, number: bool, batched: bool) -> str:
    if number or batched:
        return "type" if number else "batched"
    return "" if "shape" in scene.match.pattern else "other"


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0


def _given(scene: Scene, call: ExprAt, index: int) -> ExprAt | None:
    """The gradient for the output with this index."""
    names = ("gradient", "grad_tensors", "grad_outputs")
    method = call.called == "backward" and "autograd" not in call.text.split("(")[0]
    found = call.argument(0 if method else (1 if call.called == "backward" else 2), *names)
    listed = [] if found is None else elements(scene, found)
    return listed[index] if index < len(listed) else found


def _ones(made: ExprAt | None) -> bool:
    return made is not None and made.called in ("ones", "ones_like")
