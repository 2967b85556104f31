"""A second backward went into a part of the graph that the first one freed."""

from __future__ import annotations

from dataclasses import replace

from autograd_explain.inspect.facts.binding import Binding, binding_of
from autograd_explain.inspect.facts.failing_loops import failing_loops
from autograd_explain.inspect.facts.library_cache import emptied_by_train
from autograd_explain.inspect.facts.loop_carried import StateKind, carried_by_loop
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import (
    Confidence,
    Finding,
    Place,
    Role,
    TensorFact,
    label,
    line_facts,
)

from .carried_state import carried_state, keeps_behind
from .constants import Constants, constants
from .container_stores import handed_to_keep, stored, stored_as_attribute
from .culprit import culprit_of
from .details import Details, details_of
from .events import events_of
from .evidence import gather
from .freed_on_the_way import freed_on_the_way
from .freed_part import FreedPart, earlier_backwards, freed_part, old_names
from .given_once import given_once
from .handed_object import handed_object
from .kept_by_library import is_trained, kept_by_library, run_at
from .one_object import one_object
from .reason import Why, before_loop, loss_of_another_cell, reason
from .saved_read import saved_read
from .stale import stale
from .unread_result import unread_result

PATTERNS = ("backward-twice", "stale-value")

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
    "emptied": "",
    "unread": "",
    "other": "",
}

#: Where the old value is one that the program computed itself.
_COMPUTED = (
    Why.COMPUTED_ONCE,
    Why.SAME_LOSS,
    Why.SHARED,
    Why.SHARED_APART,
    Why.SHARED_STEPPED,
)


def diagnose(scene: Scene) -> Finding[Details] | None:
    if scene.match.pattern == "stale-value":
        return stale(scene, EXAMPLE)
    calls = earlier_backwards(scene)
    freed = freed_part(scene, calls) if scene.graph.is_freed else None
    if freed is None:
        found = saved_read(scene, calls, EXAMPLE)
        return None if found is None else found.with_details(Details(Why.SAVED_READ))
    once = given_once(scene, freed_on_the_way(scene, freed))
    known = gather(scene, once)
    why, before, elsewhere = reason(known), before_loop(known), loss_of_another_cell(known)
    part, memory, stepped = known.part, known.memory, known.stepped
    unread = unread_result(scene, part) if why in _COMPUTED else None
    why = why if unread is None else Why.UNREAD
    twice = one_object(scene, known)
    why = why if twice is None else Why.ONE_OBJECT
    keeps = stored(scene, part) if why in (Why.CARRIED, Why.COMPUTED_ONCE) else None
    if why is Why.CARRIED and keeps is None:
        keeps = stored_as_attribute(scene, part)
    anew = memory is None and once is freed
    library = kept_by_library(scene, part) if anew else None
    if library is not None and why is Why.COMPUTED_ONCE and _is_of_user(part, library.place):
        library = None
    if library is not None and before is not None and not _led_through(part, library.place):
        library = replace(library, place=before)  # it was handed over when the object was made
    if library is not None and library.cache and part.whole:
        why = Why.CARRIED  # the object hands out what it has computed in an earlier round
    culprit = culprit_of(scene, part, memory)
    if library is not None:
        names = dict.fromkeys((*library.names, *culprit.names))
        culprit = replace(culprit, names=tuple(names))
    unknown = why is Why.CARRIED and keeps is None and not culprit.names
    handed = handed_to_keep(scene, part) if unknown else None
    if handed is not None:
        keeps, culprit = handed[0], replace(culprit, names=(handed[1],))
    storing = None if keeps is None or keeps.read_again else keeps.place
    beside = () if storing is None or keeps is None else keeps.others
    if twice is not None:
        culprit = replace(culprit, names=tuple(dict.fromkeys((twice.name, *culprit.names))))
    of = known.derivative.of if why is Why.DERIVATIVE and known.derivative is not None else ""
    if unread is not None:
        culprit = replace(culprit, names=tuple(dict.fromkeys((unread.old, *culprit.names))))
    if of and of not in culprit.names:  # what else was made before it did not go that way
        culprit = TensorFact(Role.CULPRIT, (of,))
    state = carried_state(scene, part, culprit.names, known.held)
    loop = state.loop if why is Why.CARRIED else None
    listed = loop is not None and loop.kind is StateKind.LIST
    loop = loop if listed or not culprit.names else None
    if loop is not None:  # a library made it, or keeps it in a list, and what is there goes on
        culprit = replace(culprit, names=loop.names)
    told = culprit.names or (part.boundary.name,)
    kept = storing or (None if part.binding is None else part.binding.place)
    kept = loop.given if loop is not None and loop.given is not None else kept
    fixed = constants(scene, part) if why is Why.COMPUTED_ONCE else None
    if why is Why.COMPUTED_ONCE and storing is None and memory is None:
        kept = _named_as(scene, part, fixed) or _saving(scene, part) or kept
    kept = kept if library is None else library.place
    kept = kept if unread is None else unread.reader
    kept = kept if twice is None else twice.again
    alone = why is Why.CARRIED and storing is None and loop is None and library is None
    behind = keeps_behind(scene, part) if alone else None
    kept = kept if behind is None else binding_of(scene.program, behind).place
    on = carried_by_loop(scene, part.old) if alone and behind is None else None
    on = on if on is not None and on.behind else None
    kept = kept if on is None else on.given
    emptied = emptied_by_train(scene, culprit.names)
    owner = emptied if library is None else library.owner
    lasts = owner is not None and not {*old_names(scene, part)}.isdisjoint(culprit.names)
    remembers = None if memory is None else memory.place
    anew_in = run_at(scene, kept, emptied) if lasts and emptied is not None else ""
    handed_in = handed_object(scene, kept, told)
    switch = None if library is None or unread is not None else library.switch
    kept, beside_made = switch or kept, on is not None or switch is not None
    step = None if stepped is None else stepped.moment.place
    details = details_of(scene, known, why, told, state, storing)
    second = next(iter(details.second_uses), None)  # there the graph is to end
    told_at, beside_made = second or remembers or kept, beside_made or second is not None
    first = scene.place if part.first is None else part.first.place
    return Finding(
        cause="second_backward",
        confidence=Confidence.PROVEN,
        facts={
            **line_facts(maker=kept, first=first, failed=scene.place, step=step, memory=remembers),
            "tensor": told[0],
            "maker": kept.source if kept else part.boundary.name,
            "state": state.name,
            "state_kind": state.kind.value,
            "before_loop": label(before) if before else "",
            "loss_place": label(elsewhere) if elsewhere else "",
            "emptied": anew_in,
            "unread": "" if unread is None else unread.name,
            "other": "" if twice is None else twice.other,
        },
        tensors=(culprit,),
        events=events_of(scene, known, why, told_at, behind, beside=beside_made),
        variant=why.value,
        freed=part.lines,
        details=replace(
            details,
            handed=handed_in,
            stored_beside=beside,
            cache=library is not None and library.cache,
            options=() if library is None else library.options,
            constants=fixed,
            constant=owner is not None
            and not part.whole
            and not is_trained(scene, known.calls, owner),
            lasts=lasts,
            emptied=anew_in,
            unread=unread,
            shared_object=None if twice is None else twice.first,
        ),
    )


def _named_as(scene: Scene, part: FreedPart, found: Constants | None) -> Place | None:
    """The line on the way to what made the old value that gave it the name by which the loop reads
    it: `old = advantages(data)`, where the function has returned several."""
    path = () if part.maker is None or found is None else part.maker.path[:-1]
    for place in reversed(path):
        names = Binding((place,), scene.program.statement_at(place)).names
        if found is not None and not {*names}.isdisjoint(found.names):
            return place
    return None


def _saving(scene: Scene, part: FreedPart) -> Place | None:
    """The statement that computed what the old value is only a part or a view of: these saved
    nothing that a backward has freed.  Not one of a round, where that was made before the loop."""
    makers = [(node, scene.history.maker(node)) for node in part.old]
    if part.maker is None or not makers or any(maker is None for _, maker in makers):
        return None
    loops = failing_loops(scene)
    found = next((maker for node, maker in makers if node.freed_slots and maker is not None), None)
    if found is None or loops.hold(found) is not loops.hold(part.maker):
        return None
    return binding_of(scene.program, found).place


def _is_of_user(part: FreedPart, call: Place) -> bool:
    """Whether a line of the user's computed the old value, other than the call of what keeps it."""
    maker = part.maker
    own = maker is not None and maker.inside is None
    return own and not _led_through(part, call)


def _led_through(part: FreedPart, call: Place) -> bool:
    """Whether a line led to what computed the old value."""
    made = () if part.maker is None else part.maker.path
    return call.line_id in [place.line_id for place in made]
