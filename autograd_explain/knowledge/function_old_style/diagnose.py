"""Custom Function written in the old style."""

import ast
from dataclasses import dataclass

from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import local
from autograd_explain.inspect.facts.user_definitions import function_names
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding, Role, TensorFact

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


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    called: bool
    saved: bool  #: the old name of `saved_tensors` was read


def diagnose(scene: Scene) -> Finding[Details] | None:
    """An instance that is called gives a warning and then an error: one report is enough."""
    if scene.match.pattern == "function-instantiated" and _is_called(scene):
        return None
    called = local(scene, "__call__", "self", "torch/autograd/function.py")
    tensors = (
        (TensorFact(Role.CULPRIT, function_names(scene, type(called))),)
        if called is not MISSING
        else ()
    )
    told = finding_from_message(scene, "function_old_style", EXAMPLE, VARIANTS, tensors=tensors)
    return told.with_details(
        Details(called=told.variant == "called", saved=told.variant == "saved")
    )


def _is_called(scene: Scene) -> bool:
    spot = scene.surfaced
    if spot is None:
        return False
    parent = scene.slicer.index(spot.scope.source).parents.get(spot.node)
    return isinstance(parent, ast.Call) and parent.func is spot.node
