"""A tensor outlived its function transform."""

import ast

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.reaching_definitions import FUNCTIONS
from autograd_explain.inspect.facts.container_puts import put_of
from autograd_explain.inspect.facts.expressions import live_spot
from autograd_explain.inspect.facts.finding_from_message import At, finding_from_message
from autograd_explain.inspect.live.names import NamedTensor, without_item
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding, Place, Role, TensorFact

PATTERNS = ("functorch-escaped-tensor", "functorch-escaped-stacked")

EXAMPLE = {
    "call": "trace[0] + 1",
}


def diagnose(scene: Scene) -> Finding | None:
    kept = _kept(scene)
    return finding_from_message(
        scene,
        "tensor_left_transform",
        EXAMPLE,
        at=At.FAILING if kept is None else _kept_at(scene, kept) or At.FAILING,
        tensors=() if kept is None else (TensorFact(Role.CULPRIT, (kept.name,)),),
    )


def _kept(scene: Scene) -> NamedTensor | None:
    """The wrapper that the failing line reads by a name, or takes from a container; None where
    these are several."""
    spot = scene.surfaced
    statement = None if spot is None else scene.slicer.statement(spot)
    read = {ast.unparse(n) for n in ast.walk(statement) if _is_path(n)} if statement else set()
    found = [n for n in scene.names.tensors if without_item(n.name) in read and _is_wrapper(n)]
    return found[0] if len({without_item(n.name) for n in found}) == 1 else None


def _is_path(node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))


def _is_wrapper(named: NamedTensor) -> bool:
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(named.tensor))


def _kept_at(scene: Scene, kept: NamedTensor) -> ExprAt | Place | None:
    """What a function put into the container, or bound to the name or the attribute."""
    put = put_of(scene, kept.name)
    if put is not None:
        return put[1].place
    spot = live_spot(scene, kept.tensor)
    makers = [] if spot is None else scene.slicer.makers(spot)
    made = [m for m in makers if not isinstance(m.node, ast.Constant)]
    inside = len(made) == 1 and isinstance(made[0].scope.body, FUNCTIONS)
    return made[0] if inside else None
