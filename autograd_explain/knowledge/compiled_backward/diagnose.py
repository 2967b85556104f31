"""A compiled function was to keep its graph."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = ("compile-donated-buffers",)

EXAMPLE = {"place": "In[3]:5", "line": "loss.backward()"}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(
        scene, "compiled_backward", EXAMPLE, at=None, confidence=Confidence.LIKELY
    )
