"""What a custom Function keeps for backward."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
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
    return finding_from_message(scene, "function_saves", EXAMPLE, VARIANTS)
