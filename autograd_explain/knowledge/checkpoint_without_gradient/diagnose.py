"""Reentrant checkpoint without an input that requires grad."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import failing_place, told
from autograd_explain.model import Finding

PATTERNS = (
    "checkpoint-no-input-requires-grad",
    "checkpoint-not-necessary",
)

EXAMPLE = {
    "call": "checkpoint(encoder, batch, use_reentrant=True)",
}

VARIANTS = {
    "checkpoint-not-necessary": "output",
}


def diagnose(scene: Scene) -> Finding | None:
    return told(
        scene,
        "checkpoint_without_gradient",
        EXAMPLE,
        VARIANTS,
        at=failing_place(scene) if scene.match.pattern != "checkpoint-not-necessary" else None,
    )
