"""Old or slow form of a function transform."""

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


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "func_old_api", EXAMPLE, VARIANTS)
