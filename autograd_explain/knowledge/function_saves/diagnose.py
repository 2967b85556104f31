"""What a custom Function keeps for backward."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
from autograd_explain.model import Finding

PATTERNS = (
    "function-save-for-backward-type",
    "function-save-for-forward-type",
    "function-input-returned-and-saved",
    "function-saved-tensors-once",
    "function-clear-saved-not-bool",
)

EXAMPLE = {
    "index": "1",
    "type": "float",
}

VARIANTS = {
    "function-save-for-backward-type": "kind",
}


def diagnose(scene: Scene) -> Finding | None:
    return told(scene, "function_saves", EXAMPLE, VARIANTS)
