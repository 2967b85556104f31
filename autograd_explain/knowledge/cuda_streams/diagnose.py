"""A step or a backward met another CUDA stream, or the capture of a CUDA graph."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = (
    "optimizer-capture",
    "optimizer-capturable-warning",
    "cuda-graph-capture-stale-stream",
    "accumulate-grad-stream-mismatch",
)

EXAMPLE = {"place": "In[3]:5", "line": "loss.backward()"}
_VARIANTS = {
    "accumulate-grad-stream-mismatch": "stream",
    "cuda-graph-capture-stale-stream": "stale",
}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(
        scene,
        "cuda_streams",
        EXAMPLE,
        _VARIANTS,
        at=None,
        confidence=Confidence.LIKELY,
    )
