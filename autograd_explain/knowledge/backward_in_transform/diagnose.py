"""Autograd's own methods inside a function transform."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "backward-inside-functorch",
    "backward-inside-vmap",
    "vmap-backward-engine",
    "functorch-requires-grad-inside",
    "functorch-retain-grad-inside",
    "functorch-saved-tensor-hooks",
)

EXAMPLE = {
    "call": "out.backward()",
}

VARIANTS = {
    "functorch-saved-tensor-hooks": "hooks",
}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "backward_in_transform", EXAMPLE, VARIANTS)
