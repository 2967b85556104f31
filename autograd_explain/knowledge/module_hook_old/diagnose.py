"""A module's backward hook of the old kind."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = (
    "module-nonfull-hook-multiple-nodes",
    "module-nonfull-hook-many-inputs",
    "module-nonfull-hook-many-outputs",
    "module-nonfull-hook-nested-output",
    "module-nonfull-hook-outputs-nested",
    "module-hook-mixed-kinds",
    "module-hook-mixed-kinds-global",
)

EXAMPLE: dict[str, str] = {}

_OLD = ("register_backward_hook", "register_module_backward_hook")


def diagnose(scene: Scene) -> Finding | None:
    found = list(scene.index.calls(*_OLD, of="torch"))
    source, call = found[0] if len(found) == 1 else (None, None)
    at = None if source is None or call is None else source.place(call.lineno, None, call)
    mixed = scene.match.pattern.startswith("module-hook-mixed")
    return finding_from_message(
        scene,
        "module_hook_old",
        EXAMPLE,
        at=at,
        variant="mixed" if mixed else "",
        confidence=Confidence.PROVEN if at is not None else Confidence.LIKELY,
    )
