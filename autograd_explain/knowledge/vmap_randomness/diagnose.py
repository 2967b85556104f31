"""Random numbers inside vmap."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "vmap-random",
    "vmap-randomness-arg",
)

EXAMPLE = {
    "call": "torch.randn_like(v)",
}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "vmap_randomness", EXAMPLE)
