"""A checkpoint of the reentrant kind, or one that does not say which kind it is."""

import ast

from autograd_explain.inspect.facts.checkpointed import reentrant_calls
from autograd_explain.inspect.facts.finding_from_message import failing_place, finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Place

PATTERNS = (
    "checkpoint-use-reentrant-missing",
    "checkpoint-sequential-use-reentrant-missing",
    "checkpoint-grad-incompatible",
    "checkpoint-unexpected-kwargs",
    "checkpoint-context-fn-reentrant",
    "checkpoint-reentrant-input-type",
)

EXAMPLE = {"call": "checkpoint(block, x)", "place": "In[2]:2", "arguments": ""}

VARIANTS = {
    "checkpoint-use-reentrant-missing": "missing",
    "checkpoint-sequential-use-reentrant-missing": "missing",
    "checkpoint-grad-incompatible": "grad",
    "checkpoint-unexpected-kwargs": "keyword",
}


def diagnose(scene: Scene) -> Finding | None:
    inside = scene.match.pattern == "checkpoint-grad-incompatible"
    at, call = _reentrant(scene) if inside else (failing_place(scene), None)
    return finding_from_message(
        scene,
        "checkpoint_use_reentrant",
        EXAMPLE,
        VARIANTS,
        facts={} if not inside else {"call": "" if call is None else ast.unparse(call)},
        at=at,
        confidence=Confidence.PROVEN if at is not None else Confidence.LIKELY,
    )


def _reentrant(scene: Scene) -> tuple[Place | None, ast.Call | None]:
    """The one call that asks for the reentrant kind, by name or by saying nothing."""
    found = reentrant_calls(scene.program)
    if len(found) != 1:
        return None, None
    source, call = found[0]
    return source.place(call.lineno, None, call), call
