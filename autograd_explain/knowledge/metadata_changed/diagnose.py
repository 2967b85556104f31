"""The metadata of a tensor from .data or .detach() was to change."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = (
    "metadata-change-not-allowed",
    "resize-requires-grad",
    "set-data-incompatible-type",
    "set-data-integer",
)

EXAMPLE = {"place": "In[2]:1", "line": "x.resize_(6)"}
_VARIANTS = {"metadata-change-not-allowed": "detached"}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(
        scene,
        "metadata_changed",
        EXAMPLE,
        _VARIANTS,
        at=None,
        confidence=Confidence.LIKELY,
    )
