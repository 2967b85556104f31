"""A forked process ran backward after its parent had."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = ("autograd-and-fork",)

EXAMPLE = {"place": "In[3]:5", "line": "loss.backward()"}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(
        scene, "fork_after_backward", EXAMPLE, at=None, confidence=Confidence.LIKELY
    )
