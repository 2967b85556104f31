"""A gradient of another dtype or layout than its input."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "invalid-gradient-dtype",
    "invalid-gradient-layout",
    "invalid-gradient-complex",
)

EXAMPLE = {
    "op": "MyBackward",
    "index": "0",
    "dtype": "Long",
    "layout": "Sparse",
    "expected": "Float",
}

VARIANTS = {
    "invalid-gradient-dtype": "dtype",
    "invalid-gradient-layout": "layout",
}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "gradient_kind", EXAMPLE, VARIANTS, at=None)
