"""No forward-mode derivative for this operation."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
from autograd_explain.model import Finding

PATTERNS = (
    "forward-ad-not-implemented",
    "forward-ad-inplace-not-implemented",
    "forward-ad-out-function",
    "forward-ad-fallback",
    "forward-ad-resize",
)

EXAMPLE = {
    "op": "_cdist_forward",
}


def diagnose(scene: Scene) -> Finding | None:
    return told(scene, "forward_ad_unsupported", EXAMPLE)
