"""Python asked a tensor that requires grad for a number."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.only_way import is_only_way
from autograd_explain.inspect.facts.torch_call import (
    failing_call,
    live_value,
    tensor_fact,
)
from autograd_explain.inspect.facts.twins import twins
from autograd_explain.inspect.facts.value_names import read_with_gradient
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Certainty, Confidence, Finding, Place, What, label
from autograd_explain.program import own_nodes

from .in_library import is_behind_library, taken_in_library

_DISPLAYS = (ast.List, ast.Tuple, ast.ListComp)

PATTERNS = ("scalar-conversion-warning",)

EXAMPLE = {
    "place": "In[2]:6",
    "tensor": "loss",
    "call": "float(loss)",
    "inside": "",
    "inside_place": "",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    given: Place | None
    is_float: bool
    is_list: bool
    is_mixed: bool = False  #: names stand for other things than tensors in the list, too
    beside: tuple[Place, ...] = ()  #: the calls like it in the function, of such tensors too
    goes_on: bool = False  #: a loss depends on the tensor by the number, and in no other way
    twins: tuple[tuple[Place, str], ...] = ()  #: a library's call, and what keeps the graph there


def diagnose(scene: Scene) -> Finding[Details] | None:
    call = failing_call(scene)
    if is_behind_library(scene):
        return None if call is None else _of_library(scene, call)
    given = call and call.argument(0)
    if call is None or given is None:
        return None
    value: Any = live_value(scene, given)
    tensor = value if isinstance(value, torch.Tensor) else None
    if tensor is not None and not tensor.requires_grad:
        return None
    many = _is_list(scene, given, value)
    written = isinstance(given.node, _DISPLAYS)
    mixed = isinstance(value, (list, tuple)) and not all(is_a(v, torch.Tensor) for v in value)
    if written:
        mixed = any(is_a(scene.slicer.value(e), (int, float)) for e in _elements(given))
    number = isinstance(call.node, ast.Call) and getattr(call.node.func, "id", "") == "float"
    fact = tensor_fact(scene, tensor, given.text, *read_with_gradient(scene, given))
    return finding_from_message(
        scene,
        "scalar_conversion",
        EXAMPLE,
        facts={"tensor": given.text, "call": call.text},
        at=call,
        variant="list" if many else "",
        confidence=Confidence.PROVEN,
        tensors=(fact,),
    ).with_details(
        Details(
            scene.place_at(given),
            is_float=number,
            is_list=many,
            is_mixed=mixed,
            beside=tuple(_beside(scene, call)) if written else (),
            goes_on=not many and is_only_way(scene, call, given) is True,
        )
    )


def _beside(scene: Scene, call: ExprAt) -> Iterator[Place]:
    """The calls like it in the function, of live tensors that require grad: torch warns once."""
    source = call.scope.source
    for node in own_nodes(source.function_around(call.node) or source.tree):
        other = call.inside(node) if isinstance(node, ast.Call) and node is not call.node else None
        given = None if other is None else other.argument(0)
        if other is None or given is None or other.called != call.called:
            continue
        if isinstance(given.node, (ast.List, ast.Tuple)):
            read = [(scene.slicer.value(e), _carries(scene, e)) for e in _elements(given)]
            known = all(carries or is_a(v, torch.Tensor) for v, carries in read)
            if known and any(carries for _, carries in read):
                yield scene.slicer.place(other)


def _carries(scene: Scene, element: ExprAt) -> bool:
    value = scene.slicer.value(element)
    if value is MISSING:
        return scene.gradient_tracer.trace(element).carries
    return is_a(value, torch.Tensor) and value.requires_grad


def _elements(given: ExprAt) -> Iterator[ExprAt]:
    """What a list holds as it is written, and the lists in it: `x`, also where `-x` or `x * y`
    stands there.  Numbers that stand there themselves are left out."""
    nodes: list[ast.AST] = [given.node]
    while nodes:
        node = nodes.pop()
        if isinstance(node, (ast.List, ast.Tuple)):
            nodes += node.elts
        elif isinstance(node, ast.BinOp):
            nodes += [node.left, node.right]
        elif isinstance(node, ast.UnaryOp):
            nodes.append(node.operand)
        elif isinstance(node, ast.expr) and not isinstance(node, ast.Constant):
            yield given.inside(node)


def _of_library(scene: Scene, call: ExprAt) -> Finding[Details] | None:
    taken = taken_in_library(scene, call)
    if taken is None:
        return None
    given, line = taken.given, taken.line
    fact = tensor_fact(scene, taken.tensor, given.text, *read_with_gradient(scene, given))
    cause = replace(scene.event_at(What.CAUSE, call), inside=line, certainty=Certainty.OBSERVED)
    return finding_from_message(
        scene,
        "scalar_conversion",
        EXAMPLE,
        facts={
            "tensor": given.text,
            "call": call.text,
            "inside": line.source,
            "inside_place": label(line),
        },
        at=None,
        more=[cause],
        variant="library",
        confidence=Confidence.PROVEN,
        tensors=(fact,),
    ).with_details(Details(None, is_float=False, is_list=False, twins=tuple(twins(scene, (call,)))))


def _is_list(scene: Scene, given: ExprAt, value: Any) -> bool:
    """Whether a list of tensors is converted, written there or made before under a name."""
    if isinstance(given.node, _DISPLAYS) or isinstance(value, (list, tuple)):
        return True
    made = [] if value is not MISSING else scene.slicer.makers(given)
    return bool(made) and all(isinstance(m.node, _DISPLAYS) for m in made)
