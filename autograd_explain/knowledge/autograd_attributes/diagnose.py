"""Autograd attributes set to something they do not take."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "requires-grad-not-bool",
    "set-grad-fn",
    "delete-grad-fn",
    "no-grad-decorating-class",
    "tensoroptions-requires-grad",
)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "autograd_attributes", EXAMPLE)
