"""A matrix decomposition whose gradient is not defined."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
from autograd_explain.model import Finding

PATTERNS = (
    "linalg-svd-phase",
    "linalg-eig-phase",
    "linalg-qr-complete",
    "linalg-qr-r",
)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return told(scene, "linalg_undefined", EXAMPLE, at=None)
