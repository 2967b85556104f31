"""What the recorder noticed although nothing was raised, for the causes that explain it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import torch

from ...model import Certainty, Event, Place, Role, TensorFact, What
from ...program import Program
from ...program_index import index_of
from ..dataflow import ExprAt
from ..history import TraceEvent
from ..live.shapes import shown_shape
from ..scene import Scene

if TYPE_CHECKING:
    from ...verification import GradientDifference
    from ...verification.plan import CodeRange


_SHOWN = 4


def moments(scene: Scene, role: str) -> tuple[TraceEvent, ...]:
    """The lines in a role ("saved", "changed", "cut", "backward", "step" …), guilty one first."""
    told: Mapping[str, tuple[TraceEvent, ...]] = scene.incident.evidence.get("moments", {})
    return tuple(told.get(role, ()))


def moment(scene: Scene, role: str) -> TraceEvent | None:
    return next(iter(moments(scene, role)), None)


def event(
    scene: Scene, what: What, role: str, certainty: Certainty = Certainty.OBSERVED
) -> Event | None:
    """The first moment in a role as an event of the report."""
    return scene.event(what, moment(scene, role), certainty=certainty)


def tensors(scene: Scene, key: str) -> tuple[torch.Tensor, ...]:
    """The tensors of the evidence that still live."""
    found = scene.incident.evidence.get(key) or ()
    kept = found if isinstance(found, tuple) else (found,)
    return tuple(t for t in (weak() for weak in kept) if t is not None)


def name_of(scene: Scene, tensor: torch.Tensor) -> str:
    """The best name, a loop's variable that still holds it last; the shape where the program has
    none any more."""
    first, *others = scene.names.of(tensor) or (shown_shape(tensor),)
    if not others or not first.isidentifier():
        return first
    targets = (loop.target for _, loop in scene.index.nodes(ast.For))
    turning = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return next((n for n in (first, *others) if n not in turning), first)


def culprit(scene: Scene, tensor: torch.Tensor | None, *extra: str) -> TensorFact:
    """The fact of a tensor that may be gone: then its names in the source are what is left."""
    if tensor is not None:
        return scene.fact(Role.CULPRIT, tensor, *extra)
    return TensorFact(Role.CULPRIT, tuple(dict.fromkeys(n for n in extra if n)))


def listed(names: tuple[str, ...]) -> str:
    """The first of the names."""
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")


def optimizer_name(scene: Scene) -> str:
    """What the program calls the optimizer of the finding: live, else as it was stepped."""
    weak = scene.incident.evidence.get("optimizer")
    optimizer = None if weak is None else weak()
    if optimizer is not None:
        for name, other in scene.names.optimizers():
            if other is optimizer:
                return name
    step = moment(scene, "step")
    return step.operands[0] if step is not None and step.operands else ""


def text_of(scene: Scene, place: Place | None) -> str:
    """The expression at a place as the user wrote it; where it goes over several lines its first
    one and its last character: `pipe(…)`."""
    source = None if place is None else scene.program.source_at(place)
    if source is None or place is None:
        return ""
    span = place.span
    if span is None:
        return place.source
    if span.line == span.end_line:
        return source.lines[span.line - 1][span.column : span.end_column]
    first = source.lines[span.line - 1][span.column :].rstrip()
    last = source.lines[span.end_line - 1][: span.end_column][-1:]
    return f"{first}…{last}" if first.endswith(("(", "[", "{")) else f"{first} …{last}"


def shown_at(scene: Scene, at: CodeRange) -> ExprAt | None:
    """The expression that a run of the cell has come by; None where Python (3.10) does not tell."""
    source = scene.program.source(at.filename)
    node = None if source is None else source.node_of(at.columns)
    return scene.slicer.at(source, node) if source and isinstance(node, ast.expr) else None


def assignments(program: Program, target: str) -> Iterator[tuple[Place, ast.Assign]]:
    """The statements `target = …` of the cells, oldest first."""
    for source, node in index_of(program).assignments(target):
        yield source.place(node.lineno, None, node), node


def worst_difference(scene: Scene) -> GradientDifference | None:
    """The gradient that is farthest from what it should be, where that was computed."""
    found: tuple[GradientDifference, ...] = scene.incident.evidence.get("gradients", ())
    return max(found, key=lambda d: d.error, default=None)
