"""A tangent that does not fit its tensor."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
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
    return finding_from_message(scene, "forward_ad_tangent", EXAMPLE, VARIANTS)
