"""Hooks of the engine used at the wrong time or place."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
from autograd_explain.model import Finding

PATTERNS = (
    "multi-grad-hook-mode",
    "backward-hook-not-serialized",
    "final-callback-outside-backward",
)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return told(scene, "hook_registration", EXAMPLE)
