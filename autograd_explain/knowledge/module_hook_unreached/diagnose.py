"""A module's backward hook that gradients do not reach."""

from autograd_explain.inspect.facts.finding_from_message import failing_place, finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "module-hook-output-not-tensor",
    "module-hook-no-input-grad",
    "module-hook-no-tensor-input",
)

EXAMPLE = {
    "type": "dict",
}

VARIANTS = {
    "module-hook-output-not-tensor": "output",
    "module-hook-no-input-grad": "input",
}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(
        scene,
        "module_hook_unreached",
        EXAMPLE,
        VARIANTS,
        at=failing_place(scene) if scene.match.pattern != "module-hook-no-input-grad" else None,
    )
