"""The events of the report: what made the old value, what freed it, what failed."""

from __future__ import annotations

from dataclasses import replace

from autograd_explain.inspect.facts.binding import binding_of
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Certainty, Event, Place, What

from .evidence import Evidence
from .reason import Why

#: Where the first backward should have kept the graph.
_KEPT = (Why.SAME_LOSS, Why.DERIVATIVE, Why.BY_PART)


def events_of(
    scene: Scene,
    known: Evidence,
    why: Why,
    at: Place | None,
    behind: TraceEvent | None,
    *,
    beside: bool,
) -> tuple[Event, ...]:
    """Made, freed, failed; the first is told `at` the statement to change, or is the moment
    `behind` the first backward that hands the old value on.  What only hands it on under a name, or
    has a library keep it, is told `beside` what made it."""
    part = known.part
    made = scene.event(What.CAUSE, behind or part.maker, op=part.boundary.name)
    freed, failed = scene.event(What.FREED, part.first), scene.failed()
    path = () if part.binding is None else part.binding.path
    path = path if behind is None else binding_of(scene.program, behind).path
    lines = [place.line_id for place in path]
    if why in _KEPT:  # not the loss, the first backward is to change
        made = None if freed is None else replace(freed, what=What.CAUSE)
    elif made is not None and (at is None or at.line_id in lines[-1:]):
        made = replace(made, place=path[-1], chain=path[:-1]) if path else made
    elif made is not None and at is not None and at.line_id in lines:  # what keeps it is to change
        made = replace(made, place=at, chain=path[: lines.index(at.line_id)])
    elif made is not None and (path or beside):
        made = replace(made, place=at, chain=(), certainty=Certainty.INFERRED, inside=None)
    elif made is None and at is not None:  # known by what keeps it alone
        made = Event(What.CAUSE, at)
    if beside and made is not None and at is not None:
        created = scene.event(What.CREATED, part.maker, op=part.boundary.name)
        return tuple(e for e in (created, made, freed, failed) if e is not None)
    return tuple(event for event in (made, freed, failed) if event is not None)
