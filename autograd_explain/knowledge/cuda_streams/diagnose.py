"""A step or a backward met another CUDA stream, or the capture of a CUDA graph."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, label

PATTERNS = (
    "optimizer-capture",
    "optimizer-capturable-warning",
    "cuda-graph-capture-stale-stream",
    "accumulate-grad-stream-mismatch",
)

EXAMPLE = {"place": "In[3]:5", "line": "loss.backward()"}


def diagnose(scene: Scene) -> Finding | None:
    place = scene.place
    facts = {"place": label(place), "line": "" if place is None else place.source}
    variant = _VARIANTS.get(scene.match.pattern, "")
    return finding_from_message(
        scene,
        "cuda_streams",
        EXAMPLE,
        facts=facts,
        at=None,
        variant=variant,
        confidence=Confidence.LIKELY,
    )


_VARIANTS = {
    "accumulate-grad-stream-mismatch": "stream",
    "cuda-graph-capture-stale-stream": "stale",
}
