"""Version counters changed by hand."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "increment-version-not-tensor",
    "unsafe-set-version-negative",
    "inference-unsafe-set-version",
)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "version_counter_set", EXAMPLE)
