"""A gradient of another dtype or layout than its input."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
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
    return told(scene, "gradient_kind", EXAMPLE, VARIANTS, at=None)
