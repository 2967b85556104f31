"""A tensor outlived its function transform."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = ("functorch-escaped-tensor",)

EXAMPLE = {
    "call": "trace[0] + 1",
}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "tensor_left_transform", EXAMPLE)
