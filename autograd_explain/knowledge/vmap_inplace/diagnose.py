"""In-place write inside a function transform."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
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


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "vmap_inplace", EXAMPLE, VARIANTS)
