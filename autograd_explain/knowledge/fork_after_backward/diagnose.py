"""A forked process ran backward after its parent had."""

from autograd_explain.inspect.attribution import label
from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
from autograd_explain.model import Confidence, Finding

PATTERNS = ("autograd-and-fork",)

EXAMPLE = {"place": "In[3]:5", "line": "loss.backward()"}


def diagnose(scene: Scene) -> Finding | None:
    place = scene.place
    facts = {"place": label(place), "line": "" if place is None else place.source}
    return told(
        scene, "fork_after_backward", EXAMPLE, facts=facts, at=None, confidence=Confidence.LIKELY
    )
