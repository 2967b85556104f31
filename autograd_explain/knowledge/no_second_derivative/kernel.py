"""The backward of a fused operation, which has no derivative of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.binding import Binding
from autograd_explain.inspect.facts.called_back import returned_to_library
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import backward_roots, elements
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Confidence, Finding, Place, Role, TensorFact, What, label

_BACKWARD = "_backward"


@dataclass(frozen=True)
class Kernel:
    """What the rewrite goes by."""

    attention: tuple[Place, ...] = ()  #: the statements that ran a fused attention


def backward_of_kernel(scene: Scene, example: Mapping[str, str]) -> Finding[Kernel] | None:
    """Told where the derivative that lacks one was taken; None for what is no backward."""
    op = scene.match.captures.get("op", "").partition(":")[0].rpartition("::")[2]
    if not op.endswith(_BACKWARD):
        return None
    function = op.removesuffix(_BACKWARD).lstrip("_")
    taken = next(_derivatives(scene), None)
    moments = _runs(scene, function.replace("_", "").lower())
    event = scene.event(What.CAUSE, next(iter(moments), None))
    ran = tuple(dict.fromkeys(m.place for m in moments)) or _computing(scene, taken)
    names = () if taken is None else _names(scene, taken)
    at = None if event is not None else ran[0] if ran else taken
    more = (event, None if taken is None else scene.event_at(What.CREATED, taken))
    return finding_from_message(
        scene,
        "no_second_derivative",
        example,
        facts={
            "function": function,
            "ran": "" if not ran else ran[0].source,
            "where": label(ran[0]) if ran else "",
        },
        at=at,
        variant="kernel",
        confidence=Confidence.PROVEN,
        tensors=(TensorFact(Role.CULPRIT, names),) if names else (),
        more=tuple(e for e in more if e is not None),
    ).with_details(Kernel(ran if "dot_product" in function else ()))


def _names(scene: Scene, taken: ExprAt) -> tuple[str, ...]:
    """What the program calls a derivative, and what it was taken for."""
    asked = taken.argument(1, "inputs")
    listed = [] if asked is None else elements(scene, asked)
    return tuple(
        dict.fromkeys((*derivative_names(scene, taken), *(s.text for s in listed if s.key)))
    )


def derivative_names(scene: Scene, call: ExprAt) -> tuple[str, ...]:
    """What a call of grad is assigned to, or the one derivative of it: `g = grad(y, x)[0]`."""
    statement = scene.slicer.statement(call)
    if not isinstance(statement, ast.Assign):
        return ()
    value = statement.value
    whole = value.value if isinstance(value, ast.Subscript) else value
    return Binding((scene.slicer.place(call),), statement).names if whole is call.node else ()


def _derivatives(scene: Scene) -> Iterator[ExprAt]:
    """The derivatives that the failing backward goes through, taken with `create_graph=True`."""
    returned = returned_to_library(scene)
    for root in backward_roots(scene) or ([] if returned is None else [returned]):
        for spot in (*scene.slicer.makers(root), *computation(scene, root)):
            keywords = spot.node.keywords if isinstance(spot.node, ast.Call) else []
            if spot.called in ("grad", "backward"):
                if any(k.arg == "create_graph" for k in keywords):
                    yield spot


def _runs(scene: Scene, function: str) -> tuple[TraceEvent, ...]:
    """What ran the operation, as far as it is known."""
    return scene.makers(n for n in scene.graph.nodes if n.name.lower().startswith(function))


def _computing(scene: Scene, taken: ExprAt | None) -> tuple[Place, ...]:
    """The calls of modules that what was differentiated first comes from: in the same function,
    else those of packages' modules, wherever the user's code calls them."""
    given = None if taken is None else taken.argument(0, "outputs", "tensors") or taken.receiver
    roots = [] if taken is None or given is None else elements(scene, given)
    spots = (s for r in roots for s in (*scene.slicer.makers(r), *computation(scene, r)))
    called = ((s, scene.slicer.value(s.callable)) for s in spots if s.callable is not None)
    found = [(s, m) for s, m in called if is_a(m, torch.nn.Module) and _may_attend(m)]
    near = [s for s, _ in found if taken is not None and s.scope.body is taken.scope.body]
    around = {id(s.scope.call.node) for s, _ in found if s.scope.call is not None}
    inner = [s for s, _ in found if id(s.node) not in around]
    return tuple(dict.fromkeys(scene.places_at(near or inner)))


def _may_attend(module: torch.nn.Module) -> bool:
    """Whether it is more than one of torch's own layers that know nothing of attention."""
    own = type(module).__module__.startswith("torch.nn.")
    return not own or any("Attention" in type(m).__name__ for m in module.modules())
