"""Old or slow form of a function transform."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
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
    return told(scene, "func_old_api", EXAMPLE, VARIANTS)
