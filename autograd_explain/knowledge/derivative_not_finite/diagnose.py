"""A gradient came out infinite or NaN: the operation that made it so, and at which input."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from autograd_explain.inspect.facts.silent_evidence import culprit, event, name_of, tensors
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import (
    Certainty,
    Confidence,
    Event,
    Finding,
    Place,
    Role,
    TensorFact,
    What,
    label,
)

from .chain import Root, place_to_mask, roots_before
from .operation import Operation, operation_at

if TYPE_CHECKING:
    from autograd_explain.verification import NonFinite

PATTERNS = ("nonfinite-gradient",)

EXAMPLE = {
    "parameter": "points",
    "kind": "nan",
    "operation": "torch.sqrt(gap)",
    "operand": "gap",
    "place": "In[2]:2",
    "value": "0",
    "function": "",
    "backward": "energy.backward()",
}


@dataclass(frozen=True)
class Details:
    """The operand to change, and what was found to make the derivative finite: `fill` instead of
    the values at fault, or bounds.  `result` ("inf") is what the operation gives at that value,
    where it is no finite number and the loss is one: something behind it takes it out.  `roots` are
    those that the operand's value comes from.  `apart` is the step of a diagonal that keeps the
    eigenvalues of a matrix apart."""

    operand: Place | None = None
    value: str = ""
    fill: str = ""
    floor: str = ""
    ceiling: str = ""
    result: str = ""
    roots: tuple[Root, ...] = ()
    apart: str = ""


def diagnose(scene: Scene) -> Finding[Details] | None:
    origin: NonFinite | None = scene.incident.evidence.get("origin")
    stage = "unknown" if origin is None else origin.stage.value
    if stage == "nothing":
        return None  # a scaled loss may overflow; or the run was another one
    lost = tensors(scene, "parameters")
    named = sorted(
        ((name_of(scene, t), t) for t in lost), key=lambda pair: not _is_first(pair[0], origin)
    )
    # The parameters of a model that lived in a function are gone when it has returned.
    gone: tuple[str, ...] = scene.incident.evidence.get("shapes", ())
    names = tuple(name for name, _ in named) or (gone if origin is None else origin.leaves or gone)
    names = names[:_AWAITED]
    found = None if origin is None else operation_at(scene.program, origin)
    failed = event(scene, What.FAILED, "backward")
    events = [] if found is None or origin is None else [_made(found, origin)]
    return Finding(
        cause="derivative_not_finite",
        confidence=Confidence.LIKELY if found is None else Confidence.PROVEN,
        facts={
            "parameter": names[0] if names else "",
            "kind": str(scene.incident.evidence.get("kind", "")),
            **_facts(origin, found),
            "backward": "" if failed is None or failed.place is None else failed.place.source,
        },
        tensors=_tensors(scene, named[0][1] if named else None, names, found),
        events=(*events, *(() if failed is None else (failed,))),
        variant=_variant(stage, found, origin),
        details=details_of(scene, origin, found),
        awaited=names,
    )


_AWAITED, _THERE = 4, 3


def _tensors(
    scene: Scene, lost: torch.Tensor | None, names: tuple[str, ...], found: Operation | None
) -> tuple[TensorFact, ...]:
    """What got such a gradient, and what the operation that made it so gives and reads."""
    there = () if found is None else (*found.given, *found.read)
    others = tuple(TensorFact(Role.CULPRIT, (name,)) for name in there[:_THERE])
    return (*((culprit(scene, lost, *names[:1]),) if names else ()), *others)


def _is_first(name: str, origin: NonFinite | None) -> bool:
    """Whether the first backward that made such a gradient made this one; a step spreads them."""
    return origin is not None and name in origin.leaves


def _made(found: Operation, origin: NonFinite) -> Event:
    name = origin.name or origin.node
    return Event(What.CAUSE, found.place, name, certainty=Certainty.OBSERVED, chain=found.chain)


def _facts(origin: NonFinite | None, found: Operation | None) -> dict[str, str]:
    if origin is None or found is None:
        return dict.fromkeys(("operation", "operand", "place", "value", "function"), "")
    return {
        "operation": found.text,
        "operand": "" if found.operand is None else ast.unparse(found.operand),
        "place": label(found.place),
        "value": origin.value,
        "function": ""
        if origin.name.strip("_") in found.text or found.is_operator
        else origin.name,
    }


def _variant(stage: str, found: Operation | None, origin: NonFinite | None) -> str:
    if found is None or origin is None or stage == "unknown":
        return ""
    if origin.repair.apart:
        return "repeated"
    return stage if found.operand is not None else f"{stage}_line"


def details_of(scene: Scene, origin: NonFinite | None, found: Operation | None) -> Details:
    if origin is None or found is None or found.operand is None:
        return Details()
    repair, zero = origin.repair, origin.value == "0"
    return Details(
        place_to_mask(scene, found) if zero else found.operand_place,
        origin.value,
        repair.fill,
        repair.floor,
        repair.ceiling,
        repair.result if origin.stage.value == "derivative" else "",
        roots_before(scene, found) if zero else (),
        repair.apart,
    )
