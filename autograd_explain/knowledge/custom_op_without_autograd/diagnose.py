"""A custom operator without a gradient formula."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "custom-op-no-autograd",
    "autograd-key-not-registered",
)

EXAMPLE = {
    "op": "notes_case.cube.default",
}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "custom_op_without_autograd", EXAMPLE, at=None)
