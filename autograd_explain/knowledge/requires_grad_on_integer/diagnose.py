"""An integer or boolean tensor was to require grad."""

import ast
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.syntax import head_name
from autograd_explain.inspect.facts.embedded_ids import EmbeddedIds, embedded_ids
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import live_value, maker, tensor_fact
from autograd_explain.inspect.facts.value_names import outer_names, stored_names
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Confidence, Finding, Place
from autograd_explain.program import called_name

PATTERNS = (
    "requires-grad-ctor-integer",
    "requires-grad-attr-integer",
    "requires-grad-method-integer",
)

EXAMPLE = {
    "place": "In[1]:3",
    "tensor": "positions",
    "dtype": "int64",
    "maker": "torch.arange(6)",
}

#: Constructors that take a dtype.
TAKES_DTYPE = frozenset(
    "tensor arange zeros ones full empty eye randint zeros_like ones_like full_like as_tensor "
    "empty_like randint_like".split()
)


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    constructor: bool  #: the cause is what made the tensor
    flag: Place | None
    ids: EmbeddedIds | None = None  #: it holds ids that an embedding layer looks up
    failed: Place | None = None


def diagnose(scene: Scene) -> Finding[Details] | None:
    shown = _flagged(scene)
    if shown is None:
        return None
    tensor: Any = live_value(scene, shown)
    made = shown if isinstance(shown.node, ast.Call) else maker(scene, shown)
    if isinstance(tensor, torch.Tensor) and (tensor.is_floating_point() or tensor.is_complex()):
        return None
    name = "" if isinstance(shown.node, ast.Call) else shown.text
    names = [name] if name else _to_be(scene, shown)
    fact = tensor_fact(scene, tensor if isinstance(tensor, torch.Tensor) else None, *names)
    constructor = made is not None and made.called in TAKES_DTYPE
    return finding_from_message(
        scene,
        "requires_grad_on_integer",
        EXAMPLE,
        facts={
            "tensor": name or next(iter(fact.names), shown.text),
            "dtype": fact.dtype or _dtype_of_numbers(scene, shown),
            "maker": "" if made is None else made.text,
        },
        at=made if constructor else shown,
        confidence=Confidence.PROVEN if constructor or fact.dtype else Confidence.LIKELY,
        tensors=(fact,),
    ).with_details(Details(constructor, scene.place_at(shown), _ids(scene, shown), scene.place))


def _ids(scene: Scene, shown: ExprAt) -> EmbeddedIds | None:
    """Of what was not made yet by the name that it was to get."""
    statement = scene.slicer.statement(shown)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    named = shown.inside(target) if isinstance(target, ast.Name) else shown
    return embedded_ids(scene, named)


def _to_be(scene: Scene, call: ExprAt) -> list[str]:
    """What the tensor that was not made would have been called, and what it was to be made of."""
    statement = scene.slicer.statement(call)
    named = [
        n for t in getattr(statement, "targets", ()) for n in outer_names(scene, call.inside(t))
    ]
    caller = call.scope.call if isinstance(statement, ast.Return) else None
    handed = () if caller is None else stored_names(scene, caller)
    given = call.argument(0, "data", "object") or call.receiver
    made_of = "" if given is None else head_name(given.node)
    value = None if given is None else scene.slicer.value(given.inside(ast.Name(made_of)))
    held = [made_of] if made_of and not callable(value) and not is_a(value, ModuleType) else []
    return [*stored_names(scene, call), *named, *handed, *held]


def _dtype_of_numbers(scene: Scene, call: ExprAt) -> str:
    """The dtype that a constructor gives the numbers handed to it; "" where they are not known."""
    given = _numbers(scene, call.argument(0, "data", "object"))
    while isinstance(given, (list, tuple)) and given:
        kinds = {type(n) for n in given}
        if kinds <= {int, bool}:
            return "bool" if kinds == {bool} else "int64"
        given = given[0]
    return ""


def _numbers(scene: Scene, given: ExprAt | None) -> Any:
    """The list that an expression names or writes out."""
    if given is not None and isinstance(given.node, (ast.List, ast.Tuple)):
        with suppress(ValueError):
            return ast.literal_eval(given.node)
    return live_value(scene, given)


def _flagged(scene: Scene) -> ExprAt | None:
    """The expression that was to require grad."""
    spot = scene.surfaced
    statement = None if spot is None else scene.slicer.statement(spot)
    if spot is None or statement is None:
        return None
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Attribute) and target.attr == "requires_grad":
                return spot.inside(target.value)
    calls = [spot.node, *ast.walk(statement)]
    for node in calls:
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
            return spot.inside(node.func.value)
        if called_name(node) in ("Parameter", "Variable") and node.args:
            return spot.inside(node.args[0])
        if any(k.arg == "requires_grad" for k in node.keywords):
            return spot.inside(node)
    return None
