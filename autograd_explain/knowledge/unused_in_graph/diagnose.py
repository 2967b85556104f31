"""`torch.autograd.grad` was asked for the gradient of a tensor that the graph does not use."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from autograd_explain.inspect.dataflow import Cut, CutKind, ExprAt
from autograd_explain.inspect.dataflow.grad_mode import OffBy
from autograd_explain.inspect.facts.called_back import (
    asked_by_library,
    cuts_of_what_was_handed_in,
    unrecorded_for_library,
)
from autograd_explain.inspect.facts.dead_value import DeadValue, Unread, dead_values
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.late_flag import late_flag
from autograd_explain.inspect.facts.no_graph import whole_cut
from autograd_explain.inspect.facts.non_leaf import only_leaf
from autograd_explain.inspect.facts.numbers_given import Kept, NumbersGiven
from autograd_explain.inspect.facts.observed_cuts import observed_cuts
from autograd_explain.inspect.facts.torch_call import (
    backward_roots,
    best_name,
    differentiated,
    elements,
    failing_call,
    handed_on,
    maker,
    tensor_fact,
)
from autograd_explain.inspect.facts.value_names import name_seen_at
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.live.names import storage_key
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

from .cut_between import (
    CutBetween,
    chooses,
    copied_modules,
    cut_event,
    cuts_at,
    cuts_between,
)
from .exchanged import Exchange, exchanged_by
from .kept_numbers import kept_numbers
from .made_again import Handed, MadeAgain, made_again
from .side_part import PartAsked, side_parts

PATTERNS = ("unused-input",)

EXAMPLE = {
    "place": "In[2]:4",
    "tensor": "flat",
    "index": "0",
    "root": "-energy",
    "maker": "positions.reshape(-1)",
    "used": "positions",
    "cut": "",
    "cut_place": "",
    "inputs": "1",
    "dead": "",
    "reader": "",
    "reader_place": "",
    "value": "",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    cuts: tuple[tuple[Place | None, CutKind | OffBy], ...] = ()
    unrecorded: tuple[Place, ...] = ()  #: the operations that recording was off for
    source: str = ""  #: the used tensor, where it can be named in the place of the input
    asked: Place | None = None  #: where the input is asked for
    several: bool = False  #: inputs, and nothing is known of this one
    reached: bool = False  #: whether the graph may lead to one of the inputs
    whole: str = ""  #: of which parts are asked for that were taken beside the graph
    parts: tuple[PartAsked, ...] = ()
    dead: tuple[Unread, ...] = ()
    kept: tuple[Kept, ...] = ()  #: what gave an object numbers alone
    given: tuple[Place, str] | None = None  #: the call that was handed the module, and that name
    handed: Handed | None = None  #: what the call at the place takes instead


def diagnose(scene: Scene) -> Finding[Details] | None:
    if scene.graph.ends_early:
        return None  # what is read behind that is not known: another cause tells
    index = _index(scene)
    tensor = _input(scene, index)
    call = failing_call(scene, "grad", "backward")
    given = call and call.argument(1 if _is_grad(scene) else 9, "inputs")
    listed = [] if given is None else elements(scene, given)
    asked = listed[index] if index < len(listed) else None
    roots, shown = handed_on(scene, backward_roots(scene), asked)
    handed_in = () if shown is not None else _handed_in(scene)
    cuts = _in_callback(handed_in) if shown is None else cuts_between(scene, roots, shown)
    cuts = cuts or (() if tensor is None else copied_modules(scene, roots, tensor))
    kept = () if tensor is None or cuts else kept_numbers(scene, tensor, shown)
    if tensor is not None and kept:
        name = shown.text if shown is not None else ""
        return _of_numbers(scene, scene.fact(Role.CULPRIT, tensor, name), roots, kept)
    exchange = None if tensor is None or cuts else exchanged_by(scene, tensor)
    if tensor is not None and exchange is not None:
        name = shown.text if shown is not None else ""
        return _of_package(scene, scene.fact(Role.CULPRIT, tensor, name), roots, exchange)
    if not cuts and late_flag(scene, backward_roots(scene), asked) is not None:
        return None  # it is, and was asked for too late: another cause tells
    again = None if cuts else made_again(scene, roots, shown, tensor)
    if tensor is not None and shown is not None and again is not None:
        return _of_again(scene, scene.fact(Role.CULPRIT, tensor, shown.text), roots, again)
    seen = () if cuts or tensor is None else observed_cuts(scene, tensor, scene.roots)
    cuts = cuts or cuts_at(scene, seen)
    if tensor is not None and seen and not cuts:
        name = shown.text if shown is not None else ""
        return _of_seen(scene, scene.fact(Role.CULPRIT, tensor, name), roots, seen[0])
    used = _meant(scene, tensor) if tensor is not None and not cuts else None
    parts = None if cuts else side_parts(scene, shown, asked)
    made = maker(scene, shown) if parts is None else None
    visible = None if used is None else name_seen_at(scene, shown, used)
    of_library = _given_to_library(scene, index) if shown is None and not handed_in else None
    name = _taken_in(handed_in) if shown is None else shown.text
    name = name or (of_library.text if of_library is not None else "")
    if shown is given and len(listed) == 1 and index > 0:
        name, shown = f"{name}[{index}]", None
    fact = tensor_fact(scene, tensor, name)
    other = visible or _name(scene, used)
    other = parts.whole if parts is not None else other
    blamed = tuple(dict.fromkeys((cut_event(scene, c), c.way) for c in cuts))
    cut_place = blamed[0][0].place if blamed else None
    needed = any(chooses(scene, c) for c in cuts)
    created = () if made is None else (scene.event_at(What.CREATED, made),)
    variant = "cut" if cuts else _variant(tensor, used, other)
    taken = () if parts is None else parts.makers
    variant = "derived" if taken else variant
    dead = () if variant or parts is not None else _dead(scene, roots, shown)
    variant = "dead" if dead else variant
    in_place_of = [v.read for v in dead]
    same = bool(visible) and used is not tensor and _same_numbers(tensor, used)
    nameable = shown is not None and same
    return finding_from_message(
        scene,
        "unused_in_graph",
        EXAMPLE,
        facts={
            "tensor": name or (fact.names[0] if fact.names else ""),
            "index": str(index),
            "root": roots[0].text if roots else asked_by_library(scene),
            "maker": next((m.text for m in (*taken, made) if m is not None), ""),
            "used": dead[0].original if dead else other,
            "cut": "" if cut_place is None else _cut_text(cuts[0], cut_place),
            "cut_place": "" if cut_place is None else label(cut_place),
            "inputs": str(len(differentiated(scene))),
            **_unread_facts(scene, dead),
        },
        at=cut_place or next(iter((*taken, *in_place_of)), None) or shown or given or of_library,
        variant=variant,
        confidence=Confidence.PROVEN if tensor is not None else Confidence.LIKELY,
        tensors=(fact, *_used_fact(scene, used)),
        more=(
            *(e for e, _ in blamed[1:]),
            *(scene.event_at(What.CAUSE, m) for m in taken[1:]),
            *created,
        ),
    ).with_details(
        Details(
            cuts=() if needed else tuple((event.place, way) for event, way in blamed),
            unrecorded=scene.places_at([c.spot for c in cuts if c.off is not None]),
            source=other if nameable and not blamed and not taken else "",
            asked=scene.place_at(asked or given),
            several=len(differentiated(scene)) != 1 and not variant,
            reached=_may_reach_one(scene),
            whole="" if parts is None else parts.whole,
            parts=() if parts is None else parts.asked,
            dead=tuple(v.place(scene) for v in dead),
        )
    )


def _of_numbers(
    scene: Scene, asked: TensorFact, roots: list[ExprAt], kept: tuple[NumbersGiven, ...]
) -> Finding[Details]:
    """Objects were given what depends on the input, and kept the numbers."""
    first = kept[0]
    return _of_call(
        scene,
        "numbers",
        replace(asked, names=(*asked.names, first.value.text)),
        roots,
        first.kept.place,
        Details(kept=tuple(k.kept for k in kept)),
        facts={"tensor": best_name(asked), "used": first.name, "value": first.value.text},
        others=(tensor_fact(scene, first.tensor, first.name, role=Role.OTHER),),
        more=[Event(What.CAUSE, k.kept.place) for k in kept[1:]],
    )


def _of_package(
    scene: Scene, asked: TensorFact, roots: list[ExprAt], exchange: Exchange
) -> Finding[Details]:
    """A package gives the module other parameters while its forward pass runs."""
    given = (scene.slicer.place(exchange.call), exchange.module.text)
    return _of_call(scene, "package", asked, roots, exchange.call, Details(given=given))


def _of_seen(
    scene: Scene, asked: TensorFact, roots: list[ExprAt], cut: TraceEvent
) -> Finding[Details]:
    """A call in which the values were seen to leave the graph, where no text says so."""
    found = _of_call(scene, "cut", asked, roots, cut.place, Details())
    told = scene.event(What.CAUSE, cut, certainty=Certainty.OBSERVED)
    return replace(found, events=(told or found.events[0], *found.events[1:]))


def _of_again(
    scene: Scene, asked: TensorFact, roots: list[ExprAt], again: MadeAgain
) -> Finding[Details]:
    """A call on the way to the result computes the value again."""
    return _of_call(
        scene,
        "again",
        asked,
        roots,
        again.call,
        Details(handed=again.handed),
        facts={"maker": again.made.text, "value": again.shared.text},
        more=[scene.event_at(What.CREATED, again.made)],
    )


def _of_call(
    scene: Scene,
    variant: str,
    asked: TensorFact,
    roots: list[ExprAt],
    at: ExprAt | Place,
    details: Details,
    *,
    facts: Mapping[str, str] | None = None,
    others: tuple[TensorFact, ...] = (),
    more: Sequence[Event] = (),
) -> Finding[Details]:
    """What a line of the user's, which is told as the cause, does past the input."""
    place = at if isinstance(at, Place) else scene.slicer.place(at)
    known = {
        "tensor": best_name(asked),
        "root": roots[0].text if roots else asked_by_library(scene),
        "cut": at.source if isinstance(at, Place) else at.text,
        "cut_place": label(place),
        "inputs": str(len(differentiated(scene))),
    }
    return finding_from_message(
        scene,
        "unused_in_graph",
        EXAMPLE,
        facts=known | dict(facts or {}),
        at=at,
        variant=variant,
        confidence=Confidence.LIKELY,
        tensors=(asked, *others),
        more=more,
    ).with_details(details)


def _handed_in(scene: Scene) -> tuple[Cut, ...]:
    """A library asked; it had got the result from a function of the user's, or what it asks for
    from a module that the function calls."""
    handed_in = cuts_of_what_was_handed_in(scene) or unrecorded_for_library(scene)
    return tuple(whole_cut(scene, cut) for cut in handed_in)


def _given_to_library(scene: Scene, index: int) -> ExprAt | None:
    """The input in the user's call of the library that asked for the gradients of as many."""
    call = failing_call(scene)
    first = None if call is None else call.argument(0)
    listed = [] if first is None else elements(scene, first)
    return listed[index] if len(listed) == len(differentiated(scene)) > 1 else None


def _in_callback(cuts: tuple[Cut, ...]) -> tuple[CutBetween, ...]:
    return tuple(CutBetween(cut.kind, cut.spot, cut.off) for cut in cuts)


def _taken_in(cuts: tuple[Cut, ...]) -> str:
    """What the user's function calls what it was handed, or the call of the library's module."""
    return next((cut.operand.text for cut in cuts), "")


def _cut_text(cut: CutBetween, place: Place) -> str:
    return cut.spot.text if cut.off is None else place.source


def _dead(scene: Scene, roots: list[ExprAt], shown: ExprAt | None) -> tuple[DeadValue, ...]:
    """The values made of the input that nothing reads, in the function that names both."""
    if shown is None or shown.key is None or len(roots) != 1:
        return ()
    same = roots[0].scope.body is shown.scope.body
    return dead_values(scene, roots[0], (shown.key,))[1] if same else ()


def _unread_facts(scene: Scene, dead: tuple[DeadValue, ...]) -> dict[str, str]:
    if not dead:
        return {}
    reader = scene.slicer.place(dead[0].read)
    return {"dead": dead[0].name, "reader": reader.source, "reader_place": label(reader)}


def _index(scene: Scene) -> int:
    found = scene.match.captures.get("index", "0")
    return int(found) if found.isdigit() else 0


def _is_grad(scene: Scene) -> bool:
    return any(f.function == "grad" for f in scene.incident.frames)


def _input(scene: Scene, index: int) -> torch.Tensor | None:
    inputs = differentiated(scene)
    found = inputs[index] if index < len(inputs) else None
    return found if isinstance(found, torch.Tensor) else None


def _leaves(scene: Scene) -> Iterator[torch.Tensor]:
    """The leaves that the differentiated graph ends in."""
    for node in scene.graph.nodes:
        if node.variable is not None:
            yield node.variable


def _may_reach_one(scene: Scene) -> bool:
    """Whether the graph may lead to one of several inputs: with zeros for all of them nothing would
    be trained."""
    inputs = differentiated(scene)
    if len(inputs) < 2 or not scene.graph.nodes or not scene.graph.complete:
        return True
    leaves = {id(leaf) for leaf in _leaves(scene)}
    return any(not t.is_leaf or id(t) in leaves for t in inputs if isinstance(t, torch.Tensor))


def _meant(scene: Scene, tensor: torch.Tensor) -> torch.Tensor | None:
    """The one leaf of the graph that the input was made from or has the values of."""
    leaves = list({id(t): t for t in _leaves(scene)}.values())
    source = only_leaf(tensor)
    related = [t for t in leaves if t is source]
    related = related or [t for t in leaves if storage_key(t) == storage_key(tensor) is not None]
    related = related or [t for t in leaves if _same_values(t, tensor)]
    return related[0] if len(related) == 1 else None


def _same_numbers(tensor: torch.Tensor | None, used: torch.Tensor | None) -> bool:
    """Whether the input is the used tensor in another shape: only then are the gradients alike."""
    if tensor is None or used is None or tensor.numel() != used.numel():
        return False
    if storage_key(tensor) == storage_key(used) is not None:
        return True
    return tensor.dtype == used.dtype and torch.equal(tensor.reshape(-1), used.reshape(-1))


def _same_values(one: torch.Tensor, other: torch.Tensor) -> bool:
    """A copy: the same numbers, more than one of them and not all equal."""
    if one.shape != other.shape or one.dtype != other.dtype or one.device != other.device:
        return False
    if one.numel() < 2 or one.numel() > 10_000_000:
        return False
    with torch.no_grad():
        return bool(torch.equal(one, other)) and bool((one != one.reshape(-1)[0]).any())


def _name(scene: Scene, tensor: torch.Tensor | None) -> str:
    names = () if tensor is None else [n.name for n in scene.names.tensors if n.tensor is tensor]
    return next(iter(names), "")


def _variant(tensor: torch.Tensor | None, used: torch.Tensor | None, name: str) -> str:
    if used is None or tensor is None:
        return ""
    if used is tensor:
        return "exchanged"
    if not name:
        return "older"
    derived = only_leaf(tensor) is used or storage_key(used) == storage_key(tensor)
    return "derived" if derived else "copy"


def _used_fact(scene: Scene, used: torch.Tensor | None) -> tuple[Any, ...]:
    return () if used is None else (tensor_fact(scene, used, role=Role.OTHER),)
