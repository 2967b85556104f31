"""Custom Function written in the old style."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
from autograd_explain.model import Finding

PATTERNS = (
    "function-legacy-call",
    "function-instantiated",
    "function-legacy-attribute",
    "function-saved-variables",
)

EXAMPLE = {
    "call": "Cube()(x)",
    "attribute": "",
}

VARIANTS = {
    "function-legacy-call": "called",
    "function-instantiated": "instance",
    "function-saved-variables": "saved",
}


def diagnose(scene: Scene) -> Finding | None:
    return told(scene, "function_old_style", EXAMPLE, VARIANTS)
