"""Hooks of the engine used at the wrong time or place."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "multi-grad-hook-mode",
    "backward-hook-not-serialized",
    "final-callback-outside-backward",
)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "hook_registration", EXAMPLE)
