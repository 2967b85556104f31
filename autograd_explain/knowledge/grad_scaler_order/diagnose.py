"""Calls of a GradScaler in the wrong order."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "gradscaler-unscale-after-step",
    "gradscaler-scale-none",
    "gradscaler-scale-type",
    "gradscaler-load-empty",
)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "grad_scaler_order", EXAMPLE)
