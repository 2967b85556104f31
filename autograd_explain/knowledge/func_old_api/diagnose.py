"""Old or slow form of a function transform."""

from dataclasses import dataclass

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "functorch-module-deprecated",
    "vmap-slow-fallback",
    "legacy-vmap-warning",
    "jacobian-vectorize-fallback",
)

EXAMPLE = {
    "api": "vmap",
    "replacement": "torch.vmap",
    "op": "",
    "call": "functorch.vmap(weighted)",
}

VARIANTS = {
    "functorch-module-deprecated": "moved",
    "vmap-slow-fallback": "slow",
    "jacobian-vectorize-fallback": "slow",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    replacement: str  #: "" where nothing was moved


def diagnose(scene: Scene) -> Finding[Details] | None:
    told = finding_from_message(scene, "func_old_api", EXAMPLE, VARIANTS)
    return told.with_details(Details(told.facts["replacement"] if told.variant == "moved" else ""))
