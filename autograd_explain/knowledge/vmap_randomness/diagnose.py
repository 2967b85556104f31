"""Random numbers inside vmap."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
from autograd_explain.model import Finding

PATTERNS = (
    "vmap-random",
    "vmap-randomness-arg",
)

EXAMPLE = {
    "call": "torch.randn_like(v)",
}


def diagnose(scene: Scene) -> Finding | None:
    return told(scene, "vmap_randomness", EXAMPLE)
