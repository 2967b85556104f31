"""Options of checkpoints that do not fit together."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "checkpoint-determinism-check",
    "checkpoint-debug-with-context-fn",
    "checkpoint-context-yield",
    "checkpoint-selective-op-type",
    "checkpoint-selective-policy-type",
    "checkpoint-device-types",
    "checkpoint-device-initialized",
    "graph-exec-group-nested",
    "budget-type",
    "budget-range",
    "budget-eager",
)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "checkpoint_options", EXAMPLE)
