"""An operation that PyTorch has no derivative for."""

from dataclasses import dataclass

from autograd_explain.inspect.facts.finding_from_message import failing_place, finding_from_message
from autograd_explain.inspect.facts.nan_source import forward_operation
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "derivative-not-implemented",
    "composite-derivative-not-implemented",
    "not-differentiable-argument",
    "complex-output-not-supported",
    "fallback-no-derivative-forbidden",
)

EXAMPLE = {
    "op": "binary_cross_entropy",
    "operation": "",
    "argument": "weight",
    "call": "F.binary_cross_entropy(p, y, weight=w)",
    "place": "In[2]:1",
}

VARIANTS = {"not-differentiable-argument": "argument", "complex-output-not-supported": "complex"}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    argument: str = ""  #: the one that has no derivative


def diagnose(scene: Scene) -> Finding[Details] | None:
    """Raised where the operation runs, or, by a placeholder node, in backward."""
    if scene.match.pattern in VARIANTS:
        told = finding_from_message(scene, "no_derivative", EXAMPLE, VARIANTS)
        return told.with_details(Details(told.facts["argument"]))
    op = scene.match.captures.get("op", "").partition(":")[0]  # "igamma: input"
    if op.endswith("_backward"):
        return None  # a derivative that is differentiated again
    found = forward_operation(scene, op)
    if found is None:
        at = None if scene.roots else failing_place(scene)
        told = finding_from_message(scene, "no_derivative", EXAMPLE, at=at)
        return told.with_details(Details())
    place, text = found
    return finding_from_message(
        scene, "no_derivative", EXAMPLE, facts={"operation": text}, at=place, variant="at"
    ).with_details(Details())
