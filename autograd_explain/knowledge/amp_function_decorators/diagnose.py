"""Old decorators for custom Functions under autocast."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
from autograd_explain.model import Finding

PATTERNS = (
    "amp-custom-fwd-deprecated",
    "amp-custom-bwd-deprecated",
)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return told(scene, "amp_function_decorators", EXAMPLE, at=scene.place)
