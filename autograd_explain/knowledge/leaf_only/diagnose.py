"""Only for leaf tensors."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "parameter-assign-nonleaf",
    "setstate-nonleaf",
    "grad-dtype-nonleaf-get",
    "grad-dtype-nonleaf-set",
)

EXAMPLE = {
    "parameter": "weight",
}

VARIANTS = {
    "parameter-assign-nonleaf": "parameter",
}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "leaf_only", EXAMPLE, VARIANTS)
