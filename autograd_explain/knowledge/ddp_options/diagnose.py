"""Options of DistributedDataParallel without effect."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
from autograd_explain.model import Finding

PATTERNS = (
    "ddp-find-unused-but-none",
    "ddp-static-graph-twice",
    "ddp-static-graph-find-unused",
    "ddp-set-static-graph-late",
    "ddp-broadcast-buffers-deprecated",
    "ddp-broadcast-and-forward-sync",
    "ddp-check-reduction",
)

EXAMPLE: dict[str, str] = {}

VARIANTS = {
    "ddp-find-unused-but-none": "unused",
}


def diagnose(scene: Scene) -> Finding | None:
    return told(scene, "ddp_options", EXAMPLE, VARIANTS)
