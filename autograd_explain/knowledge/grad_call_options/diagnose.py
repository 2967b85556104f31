"""Options of backward and grad that do not go together."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "backward-grad-tensors-and-variables",
    "backward-grad-variables-deprecated",
    "only-inputs-deprecated",
    "materialize-grads-allow-unused",
    "gradient-edge-materialize",
    "gradient-edge-batched",
    "batched-nested",
    "cpp-real-scalar-output-only",
)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "grad_call_options", EXAMPLE)
