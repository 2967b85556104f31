"""A tangent that does not fit its tensor."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
from autograd_explain.model import Finding

PATTERNS = (
    "forward-ad-primal-dtype",
    "forward-ad-tangent-dtype",
    "forward-ad-tangent-size",
)

EXAMPLE = {
    "shape": "[2]",
    "tangent_shape": "[3]",
}

VARIANTS = {
    "forward-ad-tangent-size": "size",
}


def diagnose(scene: Scene) -> Finding | None:
    return told(scene, "forward_ad_tangent", EXAMPLE, VARIANTS)
