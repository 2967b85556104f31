"""Old decorators for custom Functions under autocast."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "amp-custom-fwd-deprecated",
    "amp-custom-bwd-deprecated",
)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "amp_function_decorators", EXAMPLE, at=scene.place)
