"""In-place write inside a function transform."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
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
    return told(scene, "vmap_inplace", EXAMPLE, VARIANTS)
