"""Views made by subclasses and extensions."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "view-chain-no-view-func",
    "view-modify-single-variable",
    "view-returned-as-is-dispatch",
)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "view_rules_of_extensions", EXAMPLE)
