"""Backward was called on a value whose graph an operation had cut."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

import torch

from autograd_explain.inspect.dataflow import Cut, CutKind, ExprAt, GradientTrace
from autograd_explain.inspect.facts.binding import binding_of
from autograd_explain.inspect.facts.checkpointed import unrecorded
from autograd_explain.inspect.facts.dead_value import Unread, dead_values
from autograd_explain.inspect.facts.freezing import Frozen, freezing, missing_flag
from autograd_explain.inspect.facts.losing_call import (
    Undecorated,
    gathering_calls,
    handed_with_gradient,
    undecorated,
)
from autograd_explain.inspect.facts.no_graph import NoGraph, by_index, find, whole_cut
from autograd_explain.inspect.facts.opposite_method import (
    flags_not_taken_back,
    opposite_method,
    switch_not_taken_back,
)
from autograd_explain.inspect.facts.torch_call import tensor_fact
from autograd_explain.inspect.facts.value_names import cut_names, names_of_callers, stored_names
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import (
    Certainty,
    Confidence,
    Event,
    Finding,
    Place,
    Relation,
    Role,
    TensorFact,
    What,
    label,
)

from .accuracy import accuracy_objective
from .frozen_then import FrozenThen, calls_around, frozen_then
from .left_gradients import REFUSED, LeftGradients, left_gradients
from .loaded_frozen import loaded_frozen
from .part_to_train import part_to_train
from .shared_module import shared_module
from .switched_block import SwitchedBlock, switched_block
from .uncut_value import uncut_value

PATTERNS = ("no-grad-fn", "backward-on-non-tensor", "gradient-without-graph-refused")

MESSAGES = {
    "gradient-without-graph-refused": "Gradient tensor {index:int} does not have grad_fn. When "
    "calling loss.backward(), make sure the option create_graph is set to True."
}

EXAMPLE = {
    "root": "loss",
    "tensor": 'picked["hard"]',
    "operation": "soft > 0.5",
    "operand": "soft",
    "place": "In[1]:8",
    "instead": 'picked["soft"]',
    "part": "",
    "labels": "",
    "inside": "",
    "inside_place": "",
    "opposite": "",
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
    left: tuple[Place, ...] = ()  #: the backwards that left the gradient
    derivatives: tuple[Place, ...] = ()  #: other calls whose derivatives lack their graph
    use: Place | None = None  #: where the cut value is used
    instead: str = ""  #: the value before it
    objective: Place | None = None  #: an accuracy that was to be differentiated
    scores: str = ""
    labels: str = ""
    missing: Missing | None = None
    parts: tuple[str, ...] = ()  #: what is to learn
    freeze: Place | None = None  #: the statement behind which it can be thawed
    setter: Place | None = None  #: the line that sets the flags, in a helper where one is called
    turn: Place | None = None  #: the call in which a module learns that another turn left frozen
    opposite: str = ""  #: the method that takes back what a library's one has done
    trainable: tuple[str, str] | None = None  #: the argument by which it is loaded to train
    undecorated: tuple[Undecorated, ...] = ()  #: calls of a library's decorated method
    dead: tuple[Unread, ...] = ()
    then_read: Place | None = None  #: where a value is read that was computed while frozen
    by_library: bool = False  #: a call of an installed library loses it
    in_block: tuple[Place, ...] = ()  #: what stands in a block that leaves out what is trained
    gathered: tuple[Place, ...] = ()  #: what gave objects what their values are computed of


def diagnose(scene: Scene) -> Finding[Details] | None:
    refused = scene.match.pattern == REFUSED
    found = _refused() if refused else find(scene)
    if found is None or found.recording_off:
        return None
    left = left_gradients(scene, found)
    if left is not None or refused:
        return _of_left(scene, found, left)
    if found.cut is not None:
        return _of_cut(scene, found, found.cut)
    if unrecorded(scene, found) is not None:
        return None
    if found.library is not None:
        return _of_library(scene, found, found.library)
    if (block := switched_block(scene, found)) is not None:
        return _of_block(scene, found, block)
    if (unread := _of_unread(scene, found)) is not None:
        return unread
    if (then := frozen_then(scene, found)) is not None:
        return _of_then(scene, found, then)
    if found.frozen and missing_flag(scene, found.root) is None:
        return _of_frozen(scene, found)
    if (index := by_index(scene, found)) is not None:
        return _of_cut(scene, found, index, index=True)
    return _of_nothing(scene, found)


def _of_cut(scene: Scene, found: NoGraph, cut: Cut, *, index: bool = False) -> Finding[Details]:
    """Of a cut on the way to the value, or to the `index` of a tensor: that has to be integers."""
    names = cut_names(scene, cut)
    bins = cut.spot.called in _BINS
    instead = uncut_value(scene, cut) if cut.kind in _WITHOUT_GRADIENT else None
    accuracy = accuracy_objective(scene, found.root, cut)
    causes = [scene.event_at(What.CAUSE, c.spot) for c in _together(scene, found, cut)]
    # What still carried gradient, and what would cut once more.
    operand = scene.event_at(What.CREATED, cut.operand, relation=Relation.OPERAND)
    later = [scene.event_at(What.DETACHED, spot) for _, spot in cut.later]
    told = _finding(
        scene,
        found,
        names,
        [*causes, operand, *later],
        Confidence.PROVEN if len(found.trace.cuts) == 1 else Confidence.LIKELY,
        "bins" if bins else cut.kind.value,
        Details(
            cuts=tuple(e.place for e in causes if e.place is not None),
            kind=None if bins or index else cut.kind,
            later=tuple((kind, scene.place_at(spot)) for kind, spot in cut.later),
            derivatives=tuple(scene.slicer.place(s) for s in _derivatives(found)),
            use=scene.place_at(None if instead is None else instead.use),
            instead="" if instead is None else instead.text,
            objective=scene.place_at(None if accuracy is None else accuracy.objective),
            scores=cut.operand.text,
            labels="" if accuracy is None else accuracy.labels,
        ),
        tensor=names[0] if names else cut.spot.text,
        operation=cut.spot.text,
        operand=cut.operand.text,
        instead="" if instead is None else instead.text,
        labels="" if accuracy is None else accuracy.labels,
    )
    return replace(told, tensors=(*told.tensors, *_before(scene, cut)))


def _before(scene: Scene, cut: Cut) -> Iterator[TensorFact]:
    """The value before the cut, where a helper cut what it was given: under its callers' names."""
    named = names_of_callers(scene, cut.operand)
    if named:
        texts = [spot.text for spot in (*reversed(named), cut.operand)]
        yield tensor_fact(scene, scene.slicer.tensor(named[-1]), *texts)


#: Operations that sort values into bins or count them.
_BINS = ("bucketize", "searchsorted", "bincount", "histc")
#: Operations that torch defines no gradient for: only the value before them can be used.
_WITHOUT_GRADIENT = (CutKind.COMPARE, CutKind.INTEGER)


def _together(scene: Scene, found: NoGraph, cut: Cut) -> Iterator[Cut]:
    """The cut to blame, then the others of its statement (`f(a.item(), b.item())`), and those whose
    arrays meet its own (`np.maximum(a, b)`)."""
    slicer = scene.slicer
    statement = slicer.statement(cut.spot)
    within = {id(n) for n in ast.walk(cut.spot.node)}
    met = {id(spot.node) for _, spot in cut.later}
    yield cut
    for other in found.trace.cuts:
        if id(other.spot.node) in within:
            continue
        if other.kind is cut.kind and slicer.statement(other.spot) is statement:
            yield other
        elif cut.kind is CutKind.NUMPY and met & {id(spot.node) for _, spot in other.later}:
            whole = whole_cut(scene, other)
            if whole.kind is cut.kind:
                yield whole


def _derivatives(found: NoGraph) -> Iterator[ExprAt]:
    """The calls that take derivatives of the value without their graph, each once."""
    cuts = found.trace.cuts
    spots = [(k, s) for c in cuts for k, s in ((c.kind, c.spot), *c.later)]
    taken = (s for k, s in spots if k is CutKind.GRADIENT and isinstance(s.node, ast.Call))
    yield from {id(s.node): s for s in taken}.values()


def _refused() -> NoGraph:
    """What is known where code looked for the graph of a gradient, and said that there is none."""
    return NoGraph(None, TensorFact(Role.ROOT, (".grad",)), GradientTrace(False))


def _of_left(scene: Scene, found: NoGraph, left: LeftGradients | None) -> Finding[Details]:
    """Code behind a backward differentiates what that left in `.grad`."""
    if left is None:
        return _finding(scene, found, (), [], Confidence.GENERAL, "", Details())
    causes = [scene.event(What.CAUSE, moment) for moment in reversed(left.backwards)]
    events = [event for event in causes if event is not None]
    return _finding(
        scene,
        found,
        left.gradient.names,
        events,
        Confidence.PROVEN,
        "left",
        Details(left=tuple(moment.place for moment in left.backwards)),
        tensor=next(iter(left.gradient.names), ""),
        operation=left.backwards[-1].place.source,
    )


def _of_unread(scene: Scene, found: NoGraph) -> Finding[Details] | None:
    """What is to get a gradient went into a value that the result does not read."""
    root = found.root
    if root is None or found.trace.carries:
        return None
    name, dead = dead_values(scene, root, _trained(root))
    return (
        None
        if not dead
        else _finding(
            scene,
            found,
            (name, *(v.name for v in dead)),
            [scene.event_at(What.CAUSE, dead[0].read)],
            Confidence.LIKELY,
            "dead",
            Details(dead=tuple(v.place(scene) for v in dead)),
            tensor=name,
            operand=dead[0].name,
            instead=dead[0].original,
            operation=scene.slicer.place(dead[0].read).source,
        )
    )


def _trained(root: ExprAt) -> Iterator[str]:
    """The names beside a result that stand for what gets a gradient: leaves and modules."""
    for name, value in [*root.scope.values.items()]:
        if is_a(value, torch.Tensor):
            if value.is_leaf and value.requires_grad:
                yield name
        elif is_a(value, torch.nn.Module) and any(p.requires_grad for p in value.parameters()):
            yield name


def _of_then(scene: Scene, found: NoGraph, then: FrozenThen) -> Finding[Details]:
    """What a module computed before its turn to learn has no graph, though it is to learn now."""
    return _finding(
        scene,
        found,
        (then.name,),
        [scene.event_at(What.CAUSE, then.call)],
        Confidence.LIKELY,
        "then",
        Details(then_read=scene.place_at(then.read)),
        tensor=then.name,
        operation=then.call.text,
        operand=then.module,
    )


def _of_block(scene: Scene, found: NoGraph, block: SwitchedBlock) -> Finding[Details]:
    """What a module computed where a method of its own left out what is to be trained."""
    first = block.inside[0]
    return _finding(
        scene,
        found,
        (*(n for s in block.inside for n in stored_names(scene, s)), block.module.text),
        [scene.event_at(What.CAUSE, block.switch)],
        Confidence.LIKELY,
        "block",
        Details(in_block=scene.places_at(block.inside)),
        tensor=block.module.text,
        operation=block.switch.text,
        operand=first.text,
    )


def _of_frozen(scene: Scene, found: NoGraph) -> Finding[Details]:
    frozen = freezing(scene, found.frozen)
    loaded = loaded_frozen(scene, found.frozen) if frozen.statement is None else None
    freeze = (frozen.handed or frozen.statement) if loaded is None else loaded.call
    part = part_to_train(scene, found.frozen, frozen.statement)
    shared = None if part is not None else shared_module(scene, frozen.statement)
    missing = Missing.FROZEN if shared is None else Missing.SHARED
    switched = flags_not_taken_back(scene) if freeze is None else None
    froze = [] if freeze is None else [scene.event_at(What.CAUSE, freeze)]
    froze += [] if switched is None else [Event(What.CAUSE, switched[0])]
    given = [] if shared is None else [scene.event_at(What.CAUSE, shared.given)]
    names = (*(() if shared is None else (shared.frozen, shared.trained)), *frozen.names)
    names = (*names, *(() if part is None else part.parts))
    return _finding(
        scene,
        found,
        names,
        [*given, *froze],
        Confidence.PROVEN if frozen.whole else Confidence.LIKELY,
        missing.value if switched is None else "switched",
        Details(
            missing=missing,
            parts=() if part is None else tuple(part.parts),
            freeze=scene.place_at(None if part is None else part.after),
            turn=None if part is not None else _turn(scene, found, frozen),
            setter=scene.place_at(frozen.statement),
            trainable=None if loaded is None else (loaded.keyword, loaded.value),
            opposite="" if switched is None else switched[1],
        ),
        tensor=names[0] if names else found.frozen[0].text,
        operation="" if not froze or froze[0].place is None else froze[0].place.source,
        instead="" if shared is None else shared.trained,
        part="" if part is None else ", ".join(part.parts),
        place=label(froze[0].place) if froze else "",
        opposite="" if switched is None else switched[1],
    )


def _turn(scene: Scene, found: NoGraph, frozen: Frozen) -> Place | None:
    """Where the module is called whose turn it is; None where it is frozen for good: by a
    constructor, or before the line that calls it."""
    freezer = frozen.handed or frozen.statement
    if freezer is None or freezer.function == "__init__":
        return None
    for spot in (*found.trace.stuck, *(found.frozen if frozen.handed else ())):
        call = next((c for c in calls_around(spot) if _calls_one(scene, c, frozen)), None)
        if call is not None and call.scope.body is not freezer.scope.body:
            return scene.place_at(call) if freezer.function else None
        if call is not None and freezer.node.lineno > call.node.lineno:
            return scene.place_at(call)
    return None


def _calls_one(scene: Scene, spot: ExprAt, frozen: Frozen) -> bool:
    module = scene.slicer.value(spot.callable or spot)
    return any(module is m for m in frozen.objects)


def _of_library(scene: Scene, found: NoGraph, lost: TraceEvent) -> Finding[Details]:
    """A library that the program calls goes on without the graph: its file is not ours to edit."""
    cause = scene.event(What.CAUSE, lost, certainty=found.certainty)
    inside, observed = lost.inside, found.certainty is Certainty.OBSERVED
    handed = handed_with_gradient(scene, lost.place)
    told = _finding(
        scene,
        found,
        binding_of(scene.program, replace(lost, inside=None)).names,
        [] if cause is None else [cause],
        Confidence.PROVEN if observed else Confidence.LIKELY,
        "call" if inside is None else "library",
        Details(
            by_library=True,
            undecorated=undecorated(scene, found.root),
            gathered=gathering_calls(scene, found.root),
            opposite=opposite_method(scene, lost.place),
        ),
        operation=lost.place.source,
        inside="" if inside is None else inside.source,
        inside_place=label(inside),
    )
    given = (tensor_fact(scene, tensor, name) for name, tensor in handed.items())
    return replace(told, tensors=(*told.tensors, *given))


def _of_nothing(scene: Scene, found: NoGraph) -> Finding[Details]:
    """Nothing behind the value ever required grad, as far as the source shows."""
    leaf = missing_flag(scene, found.root)
    left = switch_not_taken_back(scene) if leaf is None and found.trace.carries else None
    if left is not None:
        return _of_left_switched(scene, found, *left)
    names = () if leaf is None else leaf.names
    return _finding(
        scene,
        found,
        names,
        [] if leaf is None else [scene.event_at(What.CAUSE, leaf.maker)],
        Confidence.LIKELY if leaf is not None else Confidence.GENERAL,
        _without_reason(found) if leaf is None else Missing.FLAG.value,
        Details(missing=None if leaf is None else Missing.FLAG),
        tensor=names[0] if names else "",
        operation="" if leaf is None else leaf.maker.text,
    )


def _of_left_switched(
    scene: Scene, found: NoGraph, place: Place, opposite: str
) -> Finding[Details]:
    """Something that requires grad is behind the value, and a library's module was left switched:
    adapters that are merged into frozen weights."""
    return _finding(
        scene,
        found,
        (),
        [Event(What.CAUSE, place)],
        Confidence.GENERAL,
        "not_undone",
        Details(opposite=opposite),
        operation=place.source,
        opposite=opposite,
    )


def _without_reason(found: NoGraph) -> str:
    """Whether something that requires grad is behind the value, and was lost where nobody sees."""
    return "lost" if found.trace.carries else ""


def _finding(
    scene: Scene,
    found: NoGraph,
    names: tuple[str, ...],
    events: list[Event],
    confidence: Confidence,
    variant: str,
    details: Details,
    **facts: str,
) -> Finding[Details]:
    """The finding about a value of these names; the first event is what to change."""
    at = events[0].place if events else None
    place = "" if at is None else label(at)
    return Finding(
        cause="graph_cut",
        confidence=confidence,
        facts={**dict.fromkeys(EXAMPLE, ""), "root": found.root_text, "place": place, **facts},
        tensors=(
            TensorFact(Role.CULPRIT, (*names, *found.fact.names), requires_grad=False),
            found.fact,
        ),
        events=(*events, scene.failed()),
        variant=variant,
        details=details,
    )
