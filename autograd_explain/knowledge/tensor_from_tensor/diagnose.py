"""A tensor was copied by a constructor that is meant for other data: `torch.tensor(tensor)`."""

import ast
from dataclasses import dataclass, replace

import torch

from autograd_explain.arguments import bound_arguments
from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.facts.only_way import is_only_way
from autograd_explain.inspect.facts.value_names import outer_names, read_with_gradient, stored_names
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Certainty, Confidence, Finding, Role, TensorFact, What, label

PATTERNS = ("copy-construct-warning",)

EXAMPLE = {
    "tensor": 'prior["mean"]',
    "call": 'torch.tensor(prior["mean"], requires_grad=True)',
    "place": "In[2]:1",
    "copy": "start",
}

_CONSTRUCTORS = ("tensor", "new_tensor")


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    graph: bool  #: the source has one
    goes_on: bool = False  #: what the function gives, or a loss, depends on the source by the copy
    asked: bool = False  #: the copy is to require grad
    loss: bool = False  #: so is the copy of a computed number
    mixed: bool = False  #: the call is handed what is no tensor, too


def diagnose(scene: Scene) -> Finding[Details] | None:
    call = _call(scene)
    source = None if call is None else _source(call)
    if call is None or source is None:
        return None
    cause = scene.event_at(What.CAUSE, call)
    copies, callers = stored_names(scene, call), _callers(scene, call)
    read = read_with_gradient(scene, source)
    asked = _is_asked(call, *(at for at, _ in callers))
    culprit = _culprit(scene, source, read)
    return Finding(
        cause="tensor_from_tensor",
        confidence=Confidence.PROVEN,
        facts={
            "tensor": source.text,
            "call": call.text,
            "place": label(cause.place),
            "copy": copies[0] if copies else "",
        },
        tensors=(culprit,),
        events=(replace(cause, certainty=Certainty.OBSERVED), scene.failed()),
        variant="graph" if culprit.requires_grad else "",
        details=Details(
            bool(culprit.requires_grad),
            is_only_way(scene, call, source) is not False,
            asked,
            asked and _is_number(culprit, read),
            any(_is_other(scene, given.get(source.text)) for _, given in callers),
        ),
    )


def _call(scene: Scene) -> ExprAt | None:
    """The call that warned: the one that ran, or the only one of the statement that fits."""
    at = scene.surfaced
    if at is None:
        return None
    if _constructs(at.node):
        return at
    statement = scene.slicer.statement(at)
    found = [n for n in ast.walk(statement or at.node) if _constructs(n)]
    return at.inside(found[0]) if len(found) == 1 and isinstance(found[0], ast.Call) else None


def _constructs(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in _CONSTRUCTORS


def _source(call: ExprAt) -> ExprAt | None:
    """The tensor that is copied, as spelled."""
    assert isinstance(call.node, ast.Call)
    given = [*call.node.args, *(k.value for k in call.node.keywords if k.arg == "data")]
    return call.inside(given[0]) if given else None


def _callers(scene: Scene, call: ExprAt) -> list[tuple[ExprAt, dict[str, ExprAt]]]:
    """The calls of the function that copies, and what they give to its parameters."""
    body, found = call.scope.body, list[tuple[ExprAt, dict[str, ExprAt]]]()
    for source, node in scene.index.calls_of(call.function) if call.function else ():
        at = scene.slicer.at(source, node)
        bound = bound_arguments(body, node) if isinstance(body, ast.FunctionDef) else {}
        found.append((at, {name: at.inside(given) for name, given in bound.items()}))
    return found


def _is_other(scene: Scene, given: ExprAt | None) -> bool:
    """Whether what is given surely is no tensor."""
    value = MISSING if given is None else scene.slicer.value(given)
    plain = given is not None and isinstance(given.node, (ast.List, ast.Tuple, ast.Constant))
    return plain or not (value is MISSING or isinstance(value, torch.Tensor))


def _is_asked(call: ExprAt, *callers: ExprAt) -> bool:
    """Whether the copy is to require grad, also where a caller says so that the options are of."""
    assert isinstance(call.node, ast.Call)
    handed = any(k.arg is None for k in call.node.keywords)
    every = (call, *callers) if handed else (call,)
    given = (k for at in every if isinstance(at.node, ast.Call) for k in at.node.keywords)
    values = (k.value for k in given if k.arg == "requires_grad")
    return any(isinstance(v, ast.Constant) and v.value is True for v in values)


def _is_number(fact: TensorFact, read: dict[str, torch.Tensor | None]) -> bool:
    """Whether a computed number is copied: where backward began, it would end."""
    numbers = [t is not None and not t.is_leaf and t.dim() == 0 for t in read.values()]
    itself = fact.shape == () and fact.is_leaf is False
    return itself or (bool(numbers) and all(numbers))


def _culprit(scene: Scene, source: ExprAt, read: dict[str, torch.Tensor | None]) -> TensorFact:
    """The copied tensor; where it has no name, what the source tells about its gradient."""
    value = scene.incident.evidence.get("object")
    if not isinstance(value, torch.Tensor):
        value = scene.slicer.value(source)
    if isinstance(value, torch.Tensor):
        return scene.fact(Role.CULPRIT, value, source.text, *outer_names(scene, source))
    carries = True if scene.gradient_tracer.trace(source).carries else None
    names = tuple(dict.fromkeys((source.text, *read)))
    return TensorFact(Role.CULPRIT, names, requires_grad=carries)
