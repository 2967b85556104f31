"""A custom operator without a gradient formula."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
from autograd_explain.model import Finding

PATTERNS = (
    "custom-op-no-autograd",
    "autograd-key-not-registered",
)

EXAMPLE = {
    "op": "notes_case.cube.default",
}


def diagnose(scene: Scene) -> Finding | None:
    return told(scene, "custom_op_without_autograd", EXAMPLE, at=None)
