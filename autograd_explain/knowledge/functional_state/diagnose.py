"""Parameters given to functional_call or stacked for an ensemble."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "functorch-functional-call-repeated",
    "functorch-functional-call-type",
    "functorch-functional-call-strict",
    "functorch-functional-call-strict-unexpected",
    "functorch-stack-no-models",
    "functorch-stack-training-mode",
    "functorch-stack-classes",
    "functorch-stack-requires-grad",
)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "functional_state", EXAMPLE)
