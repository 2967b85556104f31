"""Gradients in another memory layout than expected."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
from autograd_explain.model import Finding

PATTERNS = ("ddp-bucket-view-strides",)

EXAMPLE = {
    "shape": "[2, 3]",
}


def diagnose(scene: Scene) -> Finding | None:
    return told(scene, "ddp_gradient_layout", EXAMPLE, at=None)
