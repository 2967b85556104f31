"""Custom Function written in the old style."""

import ast

from autograd_explain.inspect.facts.expressions import surfaced
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "function-legacy-call",
    "function-instantiated",
    "function-legacy-attribute",
    "function-saved-variables",
)

EXAMPLE = {"call": "Cube()(x)", "attribute": ""}

VARIANTS = {
    "function-legacy-call": "called",
    "function-instantiated": "instance",
    "function-saved-variables": "saved",
}


def diagnose(scene: Scene) -> Finding | None:
    """An instance that is called gives a warning and then an error: one report is enough."""
    if scene.match.pattern == "function-instantiated" and _is_called(scene):
        return None
    return finding_from_message(scene, "function_old_style", EXAMPLE, VARIANTS)


def _is_called(scene: Scene) -> bool:
    spot = surfaced(scene)
    if spot is None:
        return False
    parent = scene.slicer.index(spot.scope.source).parents.get(spot.node)
    return isinstance(parent, ast.Call) and parent.func is spot.node
