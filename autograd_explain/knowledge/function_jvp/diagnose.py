"""jvp of a custom Function does not fit its forward."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "jvp-wrong-number",
    "jvp-grad-for-nondifferentiable",
    "jvp-inplace-not-modified",
    "jvp-inplace-not-as-is",
    "jvp-view-not-view",
    "jvp-view-of-other",
    "jvp-view-different-base",
    "jvp-non-tensor",
)

EXAMPLE = {
    "count": "1",
    "expected": "2",
}

VARIANTS = {
    "jvp-wrong-number": "count",
}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "function_jvp", EXAMPLE, VARIANTS, at=None)
