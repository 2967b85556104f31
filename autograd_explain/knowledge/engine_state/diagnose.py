"""The autograd engine was entered in a state it does not allow."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "engine-could-not-compute",
    "engine-gil",
    "engine-reentrant-expired",
)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "engine_state", EXAMPLE, at=None)
