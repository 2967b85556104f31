"""Anomaly mode found a NaN: which operation of the forward pass, and which input value.

Another run of a watched cell shows both.  Else the graph does: its node knows the line, and where
the input still has a name, its value is looked at.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.nan_source import NanSource, holds, sources
from autograd_explain.inspect.scene import Scene
from autograd_explain.knowledge.derivative_not_finite.chain import place_to_mask, roots_before
from autograd_explain.knowledge.derivative_not_finite.diagnose import Details, details_of
from autograd_explain.knowledge.derivative_not_finite.operation import (
    Operation,
    operands,
    operation_at,
)
from autograd_explain.model import Certainty, Confidence, Event, Finding, Role, TensorFact, What

if TYPE_CHECKING:
    from autograd_explain.verification import NonFinite

PATTERNS = ("anomaly-nan",)

EXAMPLE = {
    "op": "PowBackward0",
    "output": "0",
    "operation": "torch.sqrt(gap)",
    "operand": "gap",
    "place": "In[2]:3",
    "value": "0",
}


_THERE = 3


@dataclass(frozen=True, eq=False)
class _Fault:
    """The operation of a node at fault; `value` is what its operand, whose live value is `tensor`
    where it has one, was seen to hold."""

    operation: Operation
    node: str
    value: str
    details: Details
    operand: ast.expr | None = None
    tensor: torch.Tensor | None = None


def diagnose(scene: Scene) -> Finding[Details] | None:
    fault = _shown_by_running(scene) or _shown_by_graph(scene)
    if fault is None:
        return finding_from_message(scene, "anomaly_nan", EXAMPLE, at=None).with_details(Details())
    found = fault.operation
    known = bool(fault.value and fault.operand is not None)
    # The line of the node that torch names is torch's own note, made while it ran; that another
    # node behind it made the gradient infinite is a conclusion.
    observed = known or fault.node == scene.match.captures.get("op", "")
    certainty = Certainty.OBSERVED if observed else Certainty.INFERRED
    cause = Event(What.CAUSE, found.place, fault.node, certainty=certainty, chain=found.chain)
    told = finding_from_message(
        scene,
        "anomaly_nan",
        EXAMPLE,
        facts={
            "operation": found.text,
            "operand": "" if fault.operand is None else ast.unparse(fault.operand),
            "value": fault.value if observed else fault.details.value,
        },
        at=found.place,
        tensors=_tensors(scene, fault),
        variant=_variant(fault, known, observed),
        confidence=Confidence.PROVEN if known else Confidence.LIKELY,
    )
    return replace(told, events=(cause, scene.failed())).with_details(fault.details)


def _variant(fault: _Fault, known: bool, observed: bool) -> str:
    if not isinstance(fault.operation.node, ast.expr):
        return ""
    if known or fault.operand is None:
        return "value" if known else "line"
    return "operand" if observed else "behind"


def _tensors(scene: Scene, fault: _Fault) -> tuple[TensorFact, ...]:
    """The operand, and what the operation gives."""
    names = dict.fromkeys((*fault.operation.read, *fault.operation.given))
    first: tuple[TensorFact, ...] = ()
    if fault.tensor is not None and fault.operand is not None:
        first = (scene.fact(Role.CULPRIT, fault.tensor, ast.unparse(fault.operand)),)
    others = [name for name in names if not any(name in fact.names for fact in first)]
    return (*first, *(TensorFact(Role.CULPRIT, (name,)) for name in others[:_THERE]))


def _shown_by_running(scene: Scene) -> _Fault | None:
    origin: NonFinite | None = scene.incident.evidence.get("origin")
    found = None if origin is None else operation_at(scene.program, origin)
    if origin is None or found is None:
        return None
    node = origin.node or origin.name
    return _Fault(found, node, origin.value, details_of(scene, origin, found), found.operand)


def _shown_by_graph(scene: Scene) -> _Fault | None:
    """Where a value was seen there; else where the graph leaves one operation only."""
    faults = [f for source in sources(scene) if (f := _fault(scene, source)) is not None]
    seen = next((f for f in faults if f.value), None)
    edges = [f for f in faults if f.details.operand is not None] or faults
    alone = len({f.operation.place for f in edges}) == 1
    return seen or (edges[0] if alone else None)


#: What stands for the values at an edge: of arc functions in the middle, else beside it.
_FILLS = {"0": "1.0", "1": "0.0"}


def _fault(scene: Scene, source: NanSource) -> _Fault | None:
    found = operation_at(scene.program, source)
    if found is None:
        return None
    details, edge = Details(), source.edge
    if edge is not None and found.operand is not None:
        # Where the loss is finite, something behind the operation takes its infinity out.
        result = edge.result if scene.graph.roots and _is_finite(scene) else ""
        zero = edge.value == "0"
        roots = roots_before(scene, found) if zero else ()
        details = Details(
            place_to_mask(scene, found) if zero else found.operand_place,
            edge.value,
            _FILLS.get(edge.value, ""),
            edge.floor,
            edge.ceiling,
            result,
            roots,
        )
    for operand in operands(found.node):
        tensor = _live(scene, operand, found)
        wanted = ("nan", "inf", edge.value) if edge and operand is found.operand else ("nan", "inf")
        value = next((v for v in wanted if tensor is not None and holds(tensor, v)), "")
        if value:
            return _Fault(found, source.node, value, details, operand, tensor)
    return _Fault(found, source.node, "", details, found.operand)


def _is_finite(scene: Scene) -> bool:
    """Whether what backward was called on is."""
    roots = [root for root in scene.graph.roots if isinstance(root, torch.Tensor)]
    return bool(roots) and all(bool(root.isfinite().all()) for root in roots)


def _live(scene: Scene, operand: ast.expr, found: Operation) -> torch.Tensor | None:
    """The operand's value where it has a name that still holds it."""
    source = scene.program.source_at(found.place)
    if source is None:
        return None
    value = scene.slicer.value(ExprAt(scene.slicer.top(source), operand))
    return value if isinstance(value, torch.Tensor) else None
