"""DataParallel: scalars gathered, gradients not cleared."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
from autograd_explain.model import Finding

PATTERNS = (
    "dataparallel-gather-scalars",
    "zero-grad-dataparallel",
)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return told(scene, "dataparallel_wrapper", EXAMPLE)
