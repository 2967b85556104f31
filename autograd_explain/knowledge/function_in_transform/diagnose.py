"""Custom Function without support for function transforms."""

from dataclasses import dataclass

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "functorch-function-no-setup-context",
    "functorch-function-no-vmap",
    "functorch-function-both-vmap",
    "functorch-function-vmap-bad-return",
    "functorch-function-vmap-bad-out-dims",
)

EXAMPLE = {
    "function": "Softsign",
}

VARIANTS = {
    "functorch-function-no-setup-context": "setup",
    "functorch-function-no-vmap": "batching",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    function: str
    batching: bool  #: there is no rule for vmap


def diagnose(scene: Scene) -> Finding[Details] | None:
    told = finding_from_message(scene, "function_in_transform", EXAMPLE, VARIANTS)
    return told.with_details(Details(told.facts["function"], told.variant == "batching"))
