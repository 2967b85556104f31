"""DistributedDataParallel cannot be built like this."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "ddp-no-process-group",
    "ddp-no-parameter-requires-grad",
    "ddp-device-ids",
    "ddp-device-ids-many",
    "ddp-uninitialized-parameters",
    "ddp-syncbn-cpu",
    "ddp-shape-mismatch-ranks",
    "ddp-shape-mismatch-sizes",
    "ddp-process-group-and-mesh",
    "ddp-pickle",
    "ddp-comm-hook-not-callable",
    "ddp-comm-hook-twice",
    "ddp-fused-optimizer",
)

EXAMPLE = {
    "call": "DistributedDataParallel(net)",
    "device_ids": "",
    "rank": "",
    "count": "",
    "other_rank": "",
    "other_count": "",
    "index": "",
    "shape": "",
}

VARIANTS = {
    "ddp-no-process-group": "group",
    "ddp-no-parameter-requires-grad": "frozen",
    "ddp-device-ids": "devices",
    "ddp-shape-mismatch-ranks": "ranks",
    "ddp-shape-mismatch-sizes": "sizes",
}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "ddp_construction", EXAMPLE, VARIANTS)
