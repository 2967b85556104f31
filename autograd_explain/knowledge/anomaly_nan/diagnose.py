"""Anomaly mode found a NaN: which operation of the forward pass, and which input value."""

import ast
from dataclasses import dataclass, replace

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.nan_source import NanSource, find
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Certainty, Confidence, Event, Finding, Role, What

PATTERNS = ("anomaly-nan",)

EXAMPLE = {
    "op": "PowBackward0",
    "output": "0",
    "operation": "torch.sqrt(gap)",
    "operand": "gap",
    "place": "In[2]:3",
    "value": "0",
}


@dataclass(frozen=True)
class Details:
    """The graph node whose gradient is no number, and the input at which it is not."""

    node: str
    value: str


def diagnose(scene: Scene) -> Finding[Details] | None:
    found = find(scene)
    known = found is not None and bool(found.value)
    told = finding_from_message(
        scene,
        "anomaly_nan",
        EXAMPLE,
        facts=_facts(found),
        at=None if found is None else found.place,
        tensors=()
        if found is None or found.tensor is None
        else (scene.fact(Role.CULPRIT, found.tensor, found.operand),),
        variant=_variant(found),
        confidence=Confidence.PROVEN if known else Confidence.LIKELY,
    )
    node, value = ("", "") if found is None else (found.name, found.value)
    return replace(told, events=_events(scene, found)).with_details(Details(node, value))


def _variant(found: NanSource | None) -> str:
    if found is None or found.operation is None:
        return ""
    return "value" if found.value else "line"


def _facts(found: NanSource | None) -> dict[str, str]:
    if found is None:
        return {}
    operation = "" if found.operation is None else ast.unparse(found.operation)
    return {"operation": operation, "operand": found.operand, "value": found.value}


def _events(scene: Scene, found: NanSource | None) -> tuple[Event, ...]:
    """The line of the node that torch names is torch's own note, made while it ran; that another
    node behind it made the gradient infinite is a conclusion."""
    if found is None or found.place is None:
        return (scene.failed(),)
    named = found.name == scene.match.captures.get("op", "")
    certainty = Certainty.OBSERVED if named else Certainty.INFERRED
    cause = Event(What.CAUSE, found.place, found.name, certainty=certainty)
    return (cause, scene.failed())
