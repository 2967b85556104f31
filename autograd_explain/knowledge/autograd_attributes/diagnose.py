"""Autograd attributes set to something they do not take."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
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
    return told(scene, "autograd_attributes", EXAMPLE)
