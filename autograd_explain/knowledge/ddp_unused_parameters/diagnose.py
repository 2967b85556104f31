"""DistributedDataParallel waits for parameters that took no part in the last backward."""

from autograd_explain.inspect.facts.distributed import (
    constructor,
    missing_parameters,
    wrapped_models,
)
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Role

PATTERNS = (
    "ddp-prior-iteration-unused",
    "ddp-prior-iteration-unused-debug",
    "ddp-prior-iteration-outputs",
    "ddp-static-graph-changed",
    "ddp-static-graph-unused-then-used",
)

EXAMPLE = {"parameters": "spare.weight, spare.bias"}


def diagnose(scene: Scene) -> Finding | None:
    missing = missing_parameters(scene)
    at = constructor(scene)
    named = ", ".join(name for name, _ in missing)
    names = scene.match.captures.get("parameters", named)
    static = scene.match.pattern.startswith("ddp-static")
    return finding_from_message(
        scene,
        "ddp_unused_parameters",
        EXAMPLE,
        facts={"parameters": names},
        at=at,
        variant="" if not names else "static" if static else "named",
        tensors=[scene.fact(Role.CULPRIT, p, name) for name, p in missing],
        confidence=Confidence.PROVEN if missing and wrapped_models(scene) else Confidence.LIKELY,
    )
