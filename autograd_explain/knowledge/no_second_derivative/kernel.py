"""The backward of a fused operation, which has no derivative of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import backward_roots, elements
from autograd_explain.inspect.facts.value_names import stored_names
from autograd_explain.inspect.scene import Scene
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
    ran = _runs(scene, function.replace("_", "").lower()) or _computing(scene, taken)
    names = () if taken is None else tuple(stored_names(scene, taken))
    at = ran[0] if ran else taken
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
        more=() if taken is None else (scene.event_at(What.CREATED, taken),),
    ).with_details(Kernel(ran if "dot_product" in function else ()))


def _derivatives(scene: Scene) -> Iterator[ExprAt]:
    """The derivatives that the failing backward goes through, taken with `create_graph=True`."""
    for root in backward_roots(scene):
        for spot in (*scene.slicer.makers(root), *computation(scene, root)):
            keywords = spot.node.keywords if isinstance(spot.node, ast.Call) else []
            if spot.called in ("grad", "backward"):
                if any(k.arg == "create_graph" for k in keywords):
                    yield spot


def _runs(scene: Scene, function: str) -> tuple[Place, ...]:
    """The user's lines that ran the operation, as far as it is known."""
    nodes = (n for n in scene.graph.nodes if n.name.lower().startswith(function))
    return tuple(dict.fromkeys(moment.place for moment in scene.makers(nodes)))


def _computing(scene: Scene, taken: ExprAt | None) -> tuple[Place, ...]:
    """The calls of modules that what was differentiated first comes from, in the same function."""
    given = None if taken is None else taken.argument(0, "outputs", "tensors") or taken.receiver
    roots = [] if taken is None or given is None else elements(scene, given)
    spots = (s for r in roots for s in (*scene.slicer.makers(r), *computation(scene, r)))
    calls = (s for s in spots if taken is not None and s.scope.body is taken.scope.body)
    called = ((s, scene.slicer.value(s.callable)) for s in calls if s.callable is not None)
    found = [s for s, value in called if isinstance(value, torch.nn.Module)]
    return tuple(dict.fromkeys(scene.places_at(found)))
