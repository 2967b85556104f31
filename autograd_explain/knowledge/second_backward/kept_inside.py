"""A state that lies somewhere in an object which the rounds work with: a cache of keys and values,
the earlier outputs of a solver, the entries of a memory."""

from __future__ import annotations

from dataclasses import replace

from autograd_explain.inspect.facts.held_state import (
    HeldState,
    goes_through_rounds,
    held_state,
    is_used_again,
)
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import TensorFact

from .evidence import Evidence
from .freed_part import FreedPart
from .reason import Why


def kept_inside(scene: Scene, known: Evidence, why: Why) -> HeldState | None:
    """What an object hands from round to round; None where the old value was shared within a round,
    or made once for all of them."""
    unknown = known.part.maker is None and why in (Why.COMPUTED_ONCE, *_WITHIN)
    if why is not Why.CARRIED and not (unknown and _comes_from_rounds(scene, known)):
        return None
    return held_state(scene, [*(n for n in scene.graph.nodes if n.freed_slots), *known.part.old])


_WITHIN = (Why.SHARED, Why.SHARED_STEPPED, Why.SHARED_APART, Why.SAME_LOSS)


def _comes_from_rounds(scene: Scene, known: Evidence) -> bool:
    """Whether the failing line itself has freed the old part, in an earlier round."""
    first = known.part.first
    if first is None:
        return goes_through_rounds(scene)
    at_failing = scene.place is not None and first.place.line_id == scene.place.line_id
    return at_failing and is_used_again(scene)


def named_inside(kept: HeldState, culprit: TensorFact) -> TensorFact:
    """The old value by the ways to what the object keeps now."""
    names = tuple(dict.fromkeys((*kept.names, *culprit.names)))
    return replace(culprit, names=names)


def is_carrier(part: FreedPart, kept: HeldState, state: str) -> bool:
    """Whether a tensor that the object keeps is the very value that a round hands on, `state` one
    of several in a container of it, or nothing else is known of the value."""
    carrier = None if part.carrier is None else part.carrier.tensor
    unknown = carrier is None and part.maker is None
    one_of_many = "[" in state and state in kept.paths
    return unknown or one_of_many or any(tensor is carrier for tensor in kept.tensors)
