"""A value left the graph, the loss depends on it, and its parameters get the rest of a gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autograd_explain.inspect.facts.silent_evidence import (
    culprit,
    event,
    listed,
    moments,
    shown_at,
    text_of,
)
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.library_switch import switch_around
from autograd_explain.model import Certainty, Confidence, Finding, Span, What, label
from autograd_explain.program import library_source

from .details import Details, decorated, kept_as, widest
from .recording_off import RecordingOff, as_events, recording_off

if TYPE_CHECKING:
    from autograd_explain.verification import SeveredValue


def of_partial_cut(scene: Scene) -> Finding[Details] | None:
    """The first of the lines at which another run of the cell has shown it; None where it has
    shown none."""
    found: tuple[SeveredValue, ...] = scene.incident.evidence.get("severed", ())
    cuts = list(moments(scene, "cut"))
    partly = (value for value in found if value.leaves and value.older is None)
    told = [(value, here) for value in partly if (here := _cuts_at(scene, value, cuts))]
    if not told:
        return None
    value, here = told[0]
    first = widest(here)
    lines = {first.place.line_id: first}
    lines |= {c.place.line_id: c for _, o in told[1:] if (c := widest(o)).place != first.place}
    operand = _operand(scene, first)
    derivative = first.op == _DERIVATIVE
    inside, switch = first.inside, ""
    for line in value.place[1:]:  # of a package, which stops it by a switch
        inside = library_source(line.filename).place(line.line)
        switch = switch_around(line.filename, line.line)
    off = None if value.drawn or derivative else recording_off(scene, here)
    # A derivative and a sample are read of a function or a distribution.
    own = not derivative and not value.drawn and first.inside is None and _is_name(operand)
    kept = (*kept_as(scene, first), *((operand,) if own else ()))
    causes = [scene.event(What.CAUSE, c, certainty=Certainty.OBSERVED) for c in lines.values()]
    events = (*as_events(causes, off), event(scene, What.FAILED, "backward"))
    tensor = scene.names.named(value.leaves[0])
    return Finding(
        cause="silent_cut",
        confidence=Confidence.PROVEN,
        facts={
            "parameter": value.leaves[0],
            "parameters": listed(value.leaves),
            "count": str(len(value.leaves)),
            "operation": text_of(scene, first.place),
            "operand": operand,
            "place": label(first.place),
            "optimizer": "",
            "step": "",
            "inside": "" if inside is None else inside.source,
            "inside_place": label(inside),
            "value": switch,
            "passed": "",
        },
        tensors=(culprit(scene, tensor, *kept, *value.leaves[1:], *value.lost),),
        events=tuple(e for e in events if e is not None),
        variant="partial_switch" if switch else _variant(value, off, derivative),
        details=Details(
            repairable=not value.drawn and off is None and not switch,
            switch=(first.place, switch) if switch else None,
            derivative=derivative,
            inside=derivative and first.inside is not None,
            off=off,
            drawn=first.place if value.drawn else None,
            undecorated=decorated(scene, first) if off is None else (),
        ),
    )


def _operand(scene: Scene, cut: TraceEvent) -> str:
    """What left: of a call of a library's what that was given, since what a method is called on
    holds the values of it."""
    first, *others = cut.operands or ("",)
    on = cut.inside is not None and text_of(scene, cut.place).startswith(f"{first}.")
    return others[0] if on and others else first


def _is_name(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def _variant(value: SeveredValue, off: RecordingOff | None, derivative: bool) -> str:
    if derivative:
        return "derivative"
    if value.drawn:
        return "partial_sample"
    return "partial" if off is None else "partial_no_grad"


_DERIVATIVE = "grad"


def _cuts_at(scene: Scene, value: SeveredValue, cuts: list[TraceEvent]) -> list[TraceEvent]:
    """What was recorded in the expression that the run has shown; in its line, where only that is
    known."""
    at = value.place[0]
    place, spot = scene.program.place(at.filename, at.line), shown_at(scene, at)
    if place is None:
        return []
    here = [c for c in cuts if c.place.line_id == place.line_id]
    span = None if spot is None else scene.slicer.place(spot).span
    within = [c for c in here if span is not None and _is_within(c.place.span, span)]
    return within or here


def _is_within(inner: Span | None, outer: Span) -> bool:
    if inner is None:
        return False
    starts = (inner.line, inner.column) >= (outer.line, outer.column)
    return starts and (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)
