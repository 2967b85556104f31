"""In-place write inside a function transform."""

from dataclasses import dataclass

from autograd_explain.inspect.facts import view_write
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import tensor_fact
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "vmap-inplace",
    "functorch-inplace-captured",
    "functorch-data-mutation",
)

EXAMPLE = {
    "call": "torch.ones(2).mul_(row)",
    "op": "inplace arithmetic",
}

VARIANTS = {
    "vmap-inplace": "batched",
    "functorch-inplace-captured": "captured",
}


@dataclass(frozen=True)
class Written:
    """Whether the tensor that is written comes from outside of the function."""

    captured: bool


def diagnose(scene: Scene) -> Finding[Written] | None:
    captured = VARIANTS.get(scene.match.pattern) == "captured"
    written = scene.surfaced and view_write.written_expression(scene, scene.surfaced)
    # A name alone: within a transform the tensor is a wrapper of torch.func's.
    tensors = (tensor_fact(scene, None, written.text),) if written else ()
    found = finding_from_message(scene, "vmap_inplace", EXAMPLE, VARIANTS, tensors=tensors)
    return found.with_details(Written(captured))
