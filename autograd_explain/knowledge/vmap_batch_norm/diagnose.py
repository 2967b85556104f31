"""Batch norm inside a function transform."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
from autograd_explain.model import Finding

PATTERNS = ("vmap-batch-norm",)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return told(scene, "vmap_batch_norm", EXAMPLE)
