"""A second backward went into a part of the graph that the first one freed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from autograd_explain.inspect.facts.binding import Binding
from autograd_explain.inspect.facts.call_levels import at_one_level, distinct
from autograd_explain.inspect.facts.retained_values import stored
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import (
    Certainty,
    Confidence,
    Event,
    Finding,
    Place,
    What,
    label,
    line_facts,
)

from .carried_state import StateKind, carried_state
from .culprit import culprit_of
from .evidence import Evidence, gather
from .reason import Why, before_loop, loss_of_another_cell, reason
from .saved_read import saved_read
from .uses import first_uses, inputs

PATTERNS = ("backward-twice",)

EXAMPLE = {
    "tensor": "hidden",
    "maker": "hidden = cell(x, hidden)",
    "maker_place": "In[2]:2",
    "first": "loss.backward()",
    "first_place": "In[2]:4",
    "failed": "loss.backward()",
    "failed_place": "In[2]:4",
    "step": "",
    "step_place": "?",
    "state": "hidden",
    "state_kind": "tensor",
    "memory": "",
    "memory_place": "?",
    "before_loop": "",
    "loss_place": "",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by; () and None where it is not known."""

    why: Why
    tensor: str = ""
    state: str = ""  #: the name under which the failing line reaches it
    state_kind: StateKind = StateKind.UNKNOWN
    stepped: bool = False  #: an optimizer stepped in between
    kept: tuple[Place, ...] = ()  #: the statement that keeps the old value, and its callers
    use: Place | None = None  #: where the new part begins, at the level of the failing line
    old: tuple[Place, ...] = ()  #: the statements that computed the old part, at that level
    reader: Place | None = None  #: the only line at which the new part reads the old value
    made: tuple[Place, ...] = ()  #: in a constructor
    attribute_uses: tuple[Place, ...] = ()  #: of what was made there
    stored: Place | None = None  #: what puts it into a mere memory of earlier rounds
    first_uses: tuple[Place, ...] = ()  #: where the earlier loss reads the shared part
    inputs: tuple[Place, ...] = ()  #: names with a graph, handed to what made the old value


def diagnose(scene: Scene) -> Finding[Details] | None:
    known = gather(scene)
    if known is None:
        found = saved_read(scene, EXAMPLE)
        return None if found is None else found.with_details(Details(Why.SAVED_READ))
    why, before, elsewhere = reason(known), before_loop(known), loss_of_another_cell(known)
    part, memory, stepped = known.part, known.memory, known.stepped
    keeps = stored(scene, part) if why in (Why.CARRIED, Why.COMPUTED_ONCE) else None
    storing = None if keeps is None or keeps.read_again else keeps.place
    culprit = culprit_of(scene, part, memory)
    state = carried_state(scene, part, culprit.names)
    tensor = culprit.names[0] if culprit.names else part.boundary.name
    kept = storing or (None if part.binding is None else part.binding.place)
    remembers = None if memory is None else memory.place
    step = None if stepped is None else stepped.moment.place
    first = scene.place if part.first is None else part.first.place
    return Finding(
        cause="second_backward",
        confidence=Confidence.PROVEN,
        facts={
            **line_facts(maker=kept, first=first, failed=scene.place, step=step, memory=remembers),
            "tensor": tensor,
            "maker": kept.source if kept else part.boundary.name,
            "state": state.name,
            "state_kind": state.kind.value,
            "before_loop": label(before) if before else "",
            "loss_place": label(elsewhere) if elsewhere else "",
        },
        tensors=(culprit,),
        events=_events(scene, known, why, remembers or kept),
        variant=why.value,
        details=replace(
            _places(known, why),
            tensor=tensor,
            state=state.name,
            state_kind=state.kind,
            stepped=stepped is not None,
            stored=storing,
            first_uses=first_uses(scene, known),
            inputs=inputs(scene, known),
        ),
    )


_CONSTRUCTORS = ("__init__", "__post_init__")


def _places(known: Evidence, why: Why) -> Details:
    """Where the old value is made, kept and read, and the statements to compute again."""
    part, reader = known.part, known.part.reader
    kept = Details(why, kept=() if part.binding is None else part.binding.path)
    paths = [moment.path for moment in part.made]
    if part.whole and why is Why.COMPUTED_ONCE:
        use, *old = at_one_level([known.failed, *paths])
        return replace(kept, use=use, old=distinct(old))
    if reader is None:
        return kept
    kept = replace(kept, reader=reader.place if part.read_once else None)
    made = [place for path in paths for place in path if place.function in _CONSTRUCTORS]
    if made:  # computed while an object was made: making another one is no way to repeat it
        return replace(kept, made=distinct(made), attribute_uses=reader.path)
    _, use, *old = at_one_level([known.failed, reader.path, *paths])
    return replace(kept, use=use, old=distinct(old))


def _events(scene: Scene, known: Evidence, why: Why, at: Place | None) -> tuple[Event, ...]:
    """Made, freed, failed; the first is told `at` the statement to change."""
    part, where = known.part, _where(known.part.binding, at)
    made = scene.event(What.CAUSE, part.maker, op=part.boundary.name)
    cause = None if made is None else replace(made, **where)
    if why is Why.SAME_LOSS:  # nothing is wrong with the loss: the first backward is to change
        cause = scene.event(What.CAUSE, part.first)
    found = [cause, scene.event(What.FREED, part.first), scene.failed()]
    return tuple(e for e in found if e is not None)


def _where(binding: Binding | None, at: Place | None) -> dict[str, Any]:
    path = () if binding is None else binding.path
    lines = [p.line_id for p in path]
    if at is None or at.line_id in lines[-1:]:
        return {"place": path[-1], "chain": path[:-1]} if path else {}
    if at.line_id in lines:  # what keeps it is to change
        return {"place": at, "chain": path[: lines.index(at.line_id)]}
    return {"place": at, "chain": (), "certainty": Certainty.INFERRED} if path else {}
