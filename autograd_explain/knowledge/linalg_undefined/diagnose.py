"""A matrix decomposition whose gradient is not defined."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "linalg-svd-phase",
    "linalg-eig-phase",
    "linalg-qr-complete",
    "linalg-qr-r",
)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "linalg_undefined", EXAMPLE, at=None)
