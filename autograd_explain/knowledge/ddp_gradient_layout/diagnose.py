"""Gradients in another memory layout than expected."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = ("ddp-bucket-view-strides",)

EXAMPLE = {
    "shape": "[2, 3]",
}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "ddp_gradient_layout", EXAMPLE, at=None)
