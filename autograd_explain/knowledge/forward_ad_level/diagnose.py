"""Dual tensors outside their forward-mode level."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
from autograd_explain.model import Finding

PATTERNS = (
    "forward-ad-no-level",
    "forward-ad-nested",
    "forward-ad-exit-wrong",
    "forward-ad-enter-invalid",
)

EXAMPLE = {
    "call": "fwAD.make_dual(x, direction)",
}

VARIANTS = {
    "forward-ad-no-level": "missing",
}


def diagnose(scene: Scene) -> Finding | None:
    return told(scene, "forward_ad_level", EXAMPLE, VARIANTS)
