"""An operation that PyTorch has no derivative for."""

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from autograd_explain.inspect.facts.finding_from_message import failing_place, finding_from_message
from autograd_explain.inspect.facts.nan_source import forward_operation
from autograd_explain.inspect.facts.silent_evidence import listed, name_of, text_of
from autograd_explain.inspect.facts.torch_call import tensor_fact
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.live.graph import GraphNode
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding, Role, What, label
from autograd_explain.nodes import GraphTraversal

PATTERNS = (
    "derivative-not-implemented",
    "composite-derivative-not-implemented",
    "not-differentiable-argument",
    "complex-output-not-supported",
    "fallback-no-derivative-forbidden",
)

EXAMPLE = {
    "op": "binary_cross_entropy",
    "operation": "",
    "argument": "weight",
    "call": "F.binary_cross_entropy(p, y, weight=w)",
    "place": "In[2]:1",
    "lacking": "",
    "source": "",
}

#: Of which edge of the node the message speaks: torch/csrc/autograd's derivatives.yaml names them.
_POSITIONS = {"self": 0, "input": 0, "other": 1}
_MOST = 5_000  #: nodes behind it that are looked at

VARIANTS = {"not-differentiable-argument": "argument", "complex-output-not-supported": "complex"}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    argument: str = ""  #: the one that has no derivative


def diagnose(scene: Scene) -> Finding[Details] | None:
    """Raised where the operation runs, or, by a placeholder node, in backward."""
    if scene.match.pattern in VARIANTS:
        argument = scene.match.captures.get("argument", "")
        given, shown = _given(scene, argument), _shown(scene, argument)
        tensors = (tensor_fact(scene, given, shown),) if shown or given is not None else ()
        told = finding_from_message(scene, "no_derivative", EXAMPLE, VARIANTS, tensors=tensors)
        return told.with_details(Details(told.facts["argument"]))
    op = scene.match.captures.get("op", "").partition(":")[0]  # "igamma: input"
    if op.endswith("_backward"):
        return None  # a derivative that is differentiated again
    ran = _ran(scene, op)
    lacking = scene.match.captures.get("op", "").partition(": ")[2]
    leaves = _leaves(ran, lacking)
    facts = {"lacking": lacking, "source": listed(tuple(name_of(scene, t) for t in leaves))}
    place, text = forward_operation(scene, op) or (None, "")
    event = None if place is not None else scene.event(What.CAUSE, _one(scene.makers(ran)))
    if event is not None and event.place is not None:
        text = text_of(scene, event.place)
        facts |= {"op": op, "place": label(event.place)}
    elif place is None and not scene.roots:
        place = failing_place(scene)
    return finding_from_message(
        scene,
        "no_derivative",
        EXAMPLE,
        facts={**facts, "operation": text},
        at=place,
        more=() if event is None else (event,),
        tensors=tuple(scene.fact(Role.CULPRIT, t) for t in leaves),
        variant="at" if text else "",
    ).with_details(Details())


def _given(scene: Scene, argument: str) -> torch.Tensor | None:
    """What a function of torch's was called with under that name, where it asks for gradients."""
    for live in reversed(scene.incident.frames):
        if scene.program.is_user_code(live.filename):
            return None
        value = live.frame.f_locals.get(argument)
        if isinstance(value, torch.Tensor) and value.requires_grad:
            return value
    return None


def _shown(scene: Scene, argument: str) -> str:
    """How the failing call writes what it gives under that name; positions are not known."""
    given = scene.surfaced and scene.surfaced.argument(sys.maxsize, argument)
    return given.text if given else ""


def _ran(scene: Scene, op: str) -> list[GraphNode]:
    """The nodes that the operation left in the graph which the backward went through."""
    word = op.strip("_").replace("_", "").lower()
    named = re.compile(rf"{re.escape(word)}backward\d*")
    return [n for n in scene.graph.nodes if word and named.fullmatch(n.name.lower())]


def _one(moments: Sequence[TraceEvent]) -> TraceEvent | None:
    """The first of them, where all are at one line."""
    return moments[0] if len({m.place for m in moments}) == 1 else None


def _leaves(ran: Iterable[GraphNode], argument: str) -> tuple[torch.Tensor, ...]:
    """The leaves that the argument without a derivative was computed from."""
    found: dict[int, torch.Tensor] = {}
    for node in ran:
        edges = node.node.next_functions
        at = 0 if len(edges) == 1 else _POSITIONS.get(argument, len(edges))
        walk = GraphTraversal([edge for edge, _ in edges[at : at + 1]], limit=_MOST)
        found |= {id(leaf): leaf for leaf in walk.leaves()}
    return tuple(found.values())
