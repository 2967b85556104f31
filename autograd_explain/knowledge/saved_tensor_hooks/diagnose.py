"""Hooks on saved tensors."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "unpack-hook-returns-non-tensor",
    "saved-tensor-constructed",
    "saved-pack-hook-modifies-input",
    "saved-register-hooks-twice",
    "saved-register-hooks-freed",
    "saved-register-hooks-none",
    "saved-tensor-detached-inplace",
    "mutation-on-saved-tensors-outside",
    "mutation-on-saved-tensors-nested",
)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "saved_tensor_hooks", EXAMPLE, at=None)
