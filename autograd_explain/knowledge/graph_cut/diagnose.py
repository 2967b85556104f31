"""Backward was called on a value whose graph an operation had cut."""

import ast
from dataclasses import dataclass
from enum import Enum

from autograd_explain.inspect.dataflow import Cut, CutKind
from autograd_explain.inspect.facts.checkpointed import unrecorded
from autograd_explain.inspect.facts.expressions import event_at, place_of
from autograd_explain.inspect.facts.freezing import freezing, missing_flag
from autograd_explain.inspect.facts.no_graph import (
    NoGraph,
    cut_names,
    find,
    is_recording_off,
    root_fact,
)
from autograd_explain.inspect.facts.overwrite import label
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import (
    Confidence,
    Event,
    Finding,
    Place,
    Relation,
    Role,
    TensorFact,
    What,
)
from autograd_explain.program import called_name

from .accuracy import accuracy_objective
from .part_to_train import part_to_train
from .shared_module import shared_module
from .uncut_value import uncut_value

PATTERNS = ("no-grad-fn", "backward-on-non-tensor")

EXAMPLE = {
    "root": "loss",
    "tensor": 'picked["hard"]',
    "operation": "soft > 0.5",
    "operand": "soft",
    "place": "In[1]:8",
    "instead": 'picked["soft"]',
    "part": "",
    "labels": "",
}


class Missing(Enum):
    """Why nothing required grad; also the variant of the texts."""

    FLAG = "flag"  #: nobody asked for it
    FROZEN = "frozen"
    SHARED = "shared"  #: the frozen module is the trained one


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    cuts: tuple[Place, ...] = ()
    kind: CutKind | None = None  #: how they cut, where a repair is known
    later: tuple[tuple[CutKind, Place | None], ...] = ()  #: what would cut once more
    use: Place | None = None  #: where the cut value is used
    instead: str = ""  #: the value before it
    objective: Place | None = None  #: an accuracy that was to be differentiated
    scores: str = ""
    labels: str = ""
    missing: Missing | None = None
    parts: tuple[str, ...] = ()  #: what is to learn
    freeze: Place | None = None  #: the statement behind which it can be thawed


def diagnose(scene: Scene) -> Finding[Details] | None:
    found = find(scene)
    if found is None or is_recording_off(found):
        return None
    if found.cut is not None:
        return _of_cut(scene, found, found.cut)
    if unrecorded(scene, found) is not None:
        return None
    if found.frozen:
        return _of_frozen(scene, found)
    return _of_nothing(scene, found)


def _of_cut(scene: Scene, found: NoGraph, cut: Cut) -> Finding[Details]:
    names, causes = cut_names(scene, cut), _causes(scene, found, cut)
    bins = called_name(cut.spot.node) in _BINS
    root = root_fact(scene, found)
    instead = uncut_value(scene, cut) if cut.kind in _WITHOUT_GRADIENT else None
    accuracy = accuracy_objective(scene, found.root, cut)
    return Finding(
        cause="graph_cut",
        confidence=Confidence.PROVEN if len(found.trace.cuts) == 1 else Confidence.LIKELY,
        facts={
            "root": _root_name(found),
            "tensor": names[0] if names else cut.spot.text,
            "operation": cut.spot.text,
            "operand": cut.operand.text,
            "place": label(place_of(scene, cut.spot)),
            "instead": "" if instead is None else instead.text,
            "part": "",
            "labels": "" if accuracy is None else accuracy.labels,
        },
        tensors=(TensorFact(Role.CULPRIT, (*names, *root.names), requires_grad=False), root),
        events=(*causes, *_uses(scene, cut), scene.failed()),
        variant="bins" if bins else cut.kind.value,
        details=Details(
            cuts=tuple(e.place for e in causes if e.place is not None),
            kind=None if bins else cut.kind,
            later=tuple((kind, place_of(scene, spot)) for kind, spot in cut.later),
            use=place_of(scene, None if instead is None else instead.use),
            instead="" if instead is None else instead.text,
            objective=place_of(scene, None if accuracy is None else accuracy.objective),
            scores=cut.operand.text,
            labels="" if accuracy is None else accuracy.labels,
        ),
    )


#: Operations that sort values into bins or count them.
_BINS = ("bucketize", "searchsorted", "bincount", "histc")
#: Operations that torch defines no gradient for: only the value before them can be used.
_WITHOUT_GRADIENT = (CutKind.COMPARE, CutKind.INTEGER)


def _causes(scene: Scene, found: NoGraph, cut: Cut) -> tuple[Event, ...]:
    """The cut to blame, then the others of its statement (`f(a.item(), b.item())`)."""
    slicer = scene.slicer
    statement = slicer.statement(cut.spot)
    within = {id(n) for n in ast.walk(cut.spot.node)}
    others = [
        c
        for c in found.trace.cuts
        if c.kind is cut.kind and id(c.spot.node) not in within
        and slicer.statement(c.spot) is statement
    ]  # fmt: skip
    return tuple(event_at(scene, What.CAUSE, c.spot) for c in (cut, *others))


def _uses(scene: Scene, cut: Cut) -> tuple[Event, ...]:
    """What still carried gradient, and what would cut once more."""
    events = [event_at(scene, What.CREATED, cut.operand, relation=Relation.OPERAND)]
    events += [event_at(scene, What.DETACHED, s) for _, s in cut.later]
    return tuple(events)


def _of_frozen(scene: Scene, found: NoGraph) -> Finding[Details]:
    frozen = freezing(scene, found.frozen)
    part = part_to_train(scene, found.frozen, frozen.statement)
    shared = None if part is not None else shared_module(scene, frozen.statement)
    missing = Missing.FROZEN if shared is None else Missing.SHARED
    root = root_fact(scene, found)
    freeze = frozen.statement
    froze = () if freeze is None else (event_at(scene, What.CAUSE, freeze),)
    given = () if shared is None else (event_at(scene, What.CAUSE, shared.given),)
    names = (*(() if shared is None else (shared.frozen, shared.trained)), *frozen.names)
    return Finding(
        cause="graph_cut",
        confidence=Confidence.PROVEN if frozen.whole else Confidence.LIKELY,
        facts={
            "root": _root_name(found),
            "tensor": names[0] if names else found.frozen[0].text,
            "operation": "" if not froze or froze[0].place is None else froze[0].place.source,
            "operand": "",
            "instead": "" if shared is None else shared.trained,
            "part": "" if part is None else ", ".join(part.parts),
            "labels": "",
            "place": "" if freeze is None else label(place_of(scene, freeze)),
        },
        tensors=(TensorFact(Role.CULPRIT, (*names, *root.names), requires_grad=False), root),
        events=(*given, *froze, scene.failed()),
        variant=missing.value,
        details=Details(
            missing=missing,
            parts=() if part is None else tuple(part.parts),
            freeze=place_of(scene, None if part is None else part.after),
        ),
    )


def _of_nothing(scene: Scene, found: NoGraph) -> Finding[Details]:
    """Nothing behind the value ever required grad, as far as the source shows."""
    root = root_fact(scene, found)
    leaf = missing_flag(scene, found.root)
    cause = () if leaf is None else (event_at(scene, What.CAUSE, leaf.maker),)
    names = () if leaf is None else leaf.names
    return Finding(
        cause="graph_cut",
        confidence=Confidence.LIKELY if leaf is not None else Confidence.GENERAL,
        facts={
            "root": _root_name(found),
            "tensor": names[0] if names else "",
            "operation": "" if leaf is None else leaf.maker.text,
            "operand": "",
            "instead": "",
            "part": "",
            "labels": "",
            "place": "" if leaf is None else label(place_of(scene, leaf.maker)),
        },
        tensors=(TensorFact(Role.CULPRIT, (*names, *root.names), requires_grad=False), root),
        events=(*cause, scene.failed()),
        variant=_without_reason(found) if leaf is None else Missing.FLAG.value,
        details=Details(missing=None if leaf is None else Missing.FLAG),
    )


def _without_reason(found: NoGraph) -> str:
    """Whether something that requires grad is behind the value, and was lost where nobody sees."""
    return "lost" if found.trace.carries else ""


def _root_name(found: NoGraph) -> str:
    return "" if found.root is None else found.root.text
