"""Inputs changed in place and outputs of a custom Function."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "function-mark-dirty-type",
    "function-mark-nondiff-type",
    "function-dirty-not-input",
    "function-dirty-not-returned",
    "function-dirty-view-multiple-outputs",
    "function-pure-view",
    "custom-function-leaf-inplace",
    "jvp-dirty-not-input",
)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "function_outputs", EXAMPLE)
