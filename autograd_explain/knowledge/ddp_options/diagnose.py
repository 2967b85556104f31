"""Options of DistributedDataParallel without effect."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
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
    return finding_from_message(scene, "ddp_options", EXAMPLE, VARIANTS)
