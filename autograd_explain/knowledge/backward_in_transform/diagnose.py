"""Autograd's own methods inside a function transform."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
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
    return told(scene, "backward_in_transform", EXAMPLE, VARIANTS)
