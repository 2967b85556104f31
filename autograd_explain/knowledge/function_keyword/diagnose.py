"""`apply` of a custom Function got arguments that its `forward` does not have."""

import ast
from dataclasses import dataclass

from autograd_explain.arguments import positional_parameters
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = ("function-kwarg-unexpected", "function-kwarg-duplicate", "function-kwarg-missing")

EXAMPLE = {
    "call": "Soften.apply(score, tau=2.0)",
    "argument": "tau",
    "inputs": "x, temperature",
}

VARIANTS = {
    "function-kwarg-unexpected": "unexpected",
    "function-kwarg-duplicate": "twice",
    "function-kwarg-missing": "missing",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    renamed: tuple[str, str] | None = None  #: the name of an argument, and the one it should have


def diagnose(scene: Scene) -> Finding[Details] | None:
    spot = scene.surfaced
    inputs = ""
    if spot is not None and isinstance(spot.node, ast.Call):
        function = spot.node.func
        owner = function.value if isinstance(function, ast.Attribute) else function
        inputs = _inputs(scene, scene.slicer.value(spot.inside(owner)))
    return finding_from_message(
        scene,
        "function_keyword",
        EXAMPLE,
        VARIANTS,
        facts={"inputs": inputs},
        confidence=Confidence.PROVEN if inputs else Confidence.LIKELY,
    ).with_details(Details(None if spot is None else _renamed(spot.node, inputs.split(", "))))


def _renamed(call: ast.AST, inputs: list[str]) -> tuple[str, str] | None:
    """Where one argument has a name that is none and one parameter is left for it."""
    if not isinstance(call, ast.Call) or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    given = [k.arg for k in call.keywords]
    left = [name for name in inputs[len(call.args) :] if name not in given]
    wrong = [name for name in given if name not in inputs]
    alone = len(left) == len(wrong) == 1
    return (wrong[0], left[0]) if alone and wrong[0] is not None else None


def _inputs(scene: Scene, cls: object) -> str:
    """The parameters of `forward` that `apply` fills."""
    forward = scene.index.method(cls, "forward") if isinstance(cls, type) else None
    if forward is None or isinstance(forward.node, ast.Lambda) or forward.node.args.vararg:
        return ""
    names = positional_parameters(forward.node)
    return ", ".join(names if "setup_context" in vars(cls) else names[1:])
