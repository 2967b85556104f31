"""A hook returned something that is no gradient."""

from autograd_explain.inspect.definitions import returned_by
from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
from autograd_explain.model import Finding

PATTERNS = (
    "hook-returns-non-tensor",
    "hook-changes-size",
    "hook-changes-type",
    "node-hook-wrong-count",
    "node-hook-returns-non-tuple",
    "node-hook-replaces-none",
    "post-accumulate-hook-returns",
    "module-hook-wrong-count",
    "module-prehook-wrong-count",
    "module-hook-no-input-grad-returns",
)

EXAMPLE = {
    "hook": "scale",
    "type": "",
    "expected": "",
    "count": "",
}

VARIANTS = {
    "hook-returns-non-tensor": "kind",
    "hook-changes-size": "size",
    "hook-changes-type": "type",
    "node-hook-wrong-count": "count",
    "module-hook-wrong-count": "count",
    "module-prehook-wrong-count": "count",
}


def diagnose(scene: Scene) -> Finding | None:
    return told(
        scene,
        "hook_result",
        EXAMPLE,
        VARIANTS,
        at=returned_by(scene.program, scene.match.captures.get("hook", "")),
    )
