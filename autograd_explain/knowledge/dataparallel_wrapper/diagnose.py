"""DataParallel: scalars gathered, gradients not cleared."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "dataparallel-gather-scalars",
    "zero-grad-dataparallel",
)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "dataparallel_wrapper", EXAMPLE)
