"""A value saved for backward was overwritten in a way that no version counter notices."""

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

import torch

from autograd_explain.arguments import values_given
from autograd_explain.inspect.facts.call_levels import at_one_level
from autograd_explain.inspect.facts.silent_evidence import (
    culprit,
    event,
    moment,
    moments,
    tensors,
    worst_difference,
)
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import (
    Certainty,
    Confidence,
    Event,
    Finding,
    Place,
    Relation,
    TensorFact,
    What,
    label,
)
from autograd_explain.program import called_name

from .graph_made import GraphMade, graph_made

PATTERNS = ("silent-overwrite", "kept-output-overwritten")

EXAMPLE = {
    "tensor": "gate",
    "saver": "gate = torch.sigmoid(x @ w)",
    "saver_place": "In[2]:2",
    "node": "SigmoidBackward0",
    "slot": "result",
    "write": "gate.data[:, 0] = 1.0",
    "write_place": "In[2]:4",
    "alias": "gate.data",
    "alias_place": "In[2]:4",
    "written": "gate.data",
    "parameter": "no",
    "backward": "loss.backward()",
    "operand": "",
    "used": "",
    "gradient": "",
    "wrong": "",
    "right": "",
}


class Way(Enum):
    """How the write came past the version counter; also the variant of the texts."""

    DATA = "data"
    SET_DATA = "set_data"
    NUMPY = "numpy"
    STEP = "step"
    FUNCTION = "function"
    CONTEXT = "context"
    UNRECORDED = "unrecorded"  #: it was counted, but the graph has no node for it
    KEPT = "kept"  #: what a hook keeps of a layer, by a later layer
    HELD = "held"  #: what the program keeps under a second name, by the first
    GRADIENT = "gradient"  #: a gradient that the program keeps as its state, by backward
    GIVEN = "given"  #: what a call was given, and the caller goes on with
    HANDED_OUT = "handed_out"  #: what a graph gives for a node, by a later node
    UNKNOWN = "unknown_write"


#: Ways that leave the version counter as it was; the others write before it is looked at.
_UNCOUNTED = (Way.DATA, Way.SET_DATA, Way.NUMPY, Way.STEP)


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    way: Way
    parameter: bool = False
    alias: str = ""
    written: str = ""
    operand: str = ""  #: what the saving statement calls the tensor
    write: Place | None = None  #: where it can wait for `failed`
    failed: Place | None = None
    shared: Place | None = None  #: the call that gave NumPy the memory
    asked: bool = False  #: a function that is called for its result wrote, into a parameter
    handed: Place | None = None  #: the object that it got the parameter with, in that call
    graph: GraphMade | None = None  #: what handed out values that were written
    copied: tuple[tuple[Place, str], ...] = ()  #: where a copy can be kept or given, and of what
    writes: tuple[Place, ...] = ()


def diagnose(scene: Scene) -> Finding[Details] | None:
    evidence = scene.incident.evidence
    way = Way(evidence.get("way", Way.UNKNOWN))
    if way is Way.UNRECORDED:
        return _unrecorded(scene)
    if way is Way.KEPT:
        return _kept_by_hook(scene)
    if way is Way.HANDED_OUT:
        return _handed_out(scene)
    if way in (Way.HELD, Way.GRADIENT, Way.GIVEN):
        return _second_name(scene, way)
    saver, write, alias = (moment(scene, role) for role in ("saved", "changed", "alias"))
    node, slot = _kept_for(scene, saver)
    backward, worst = moment(scene, "backward"), worst_difference(scene)
    fact = culprit(scene, next(iter(tensors(scene, "tensor")), None), *_source_names(scene))
    return Finding(
        cause="silent_overwrite",
        confidence=Confidence.PROVEN if write is not None else Confidence.LIKELY,
        facts={
            "tensor": fact.names[0] if fact.names else str(evidence.get("shape", "")),
            "saver": saver.place.source if saver else node,
            "saver_place": label(saver.place if saver else None),
            "node": node,
            "slot": slot,
            "write": write.place.source if write else "",
            "write_place": label(write.place) if write else "",
            "alias": alias.operands[0] + ".data" if alias and alias.operands else "",
            "alias_place": label(alias.place) if alias else "",
            "written": write.target if write else "",
            "parameter": "yes" if evidence.get("parameter") else "no",
            "backward": backward.place.source if backward else "",
            "operand": _operand(saver, alias, slot),
            "used": "",
            "gradient": worst.name if worst else "",
            "wrong": worst.plain if worst else "",
            "right": worst.reference if worst else "",
        },
        tensors=(fact,),
        events=_events(scene, way),
        variant=(way if write is not None else Way.UNKNOWN).value,
        details=_details(scene, way if write is not None else Way.UNKNOWN),
    )


def _unrecorded(scene: Scene) -> Finding[Details] | None:
    """Nothing saved was harmed: the graph just has no node for the write."""
    write, used = moment(scene, "written"), moment(scene, "used")
    alias = moment(scene, "alias")
    if write is None:
        return None
    read = alias.operands[:1] if alias is not None else ()
    names = (*read, write.target.removesuffix(".data"))
    fact = culprit(scene, next(iter(tensors(scene, "tensor")), None), *names)
    apart = None if alias is None or alias.place.line == write.place.line else alias
    events = (
        scene.event(What.CAUSE, write, certainty=Certainty.OBSERVED),
        scene.event(What.CREATED, apart, certainty=Certainty.OBSERVED, relation=Relation.ALIAS),
        event(scene, What.FAILED, "backward"),
    )
    facts = _facts(
        scene,
        fact,
        write,
        alias=read[0] + ".data" if read else "",
        used=used.place.source if used is not None else "",
    )
    return _unsaved(fact, facts, events, Details(Way.UNRECORDED))


def _unsaved(
    fact: TensorFact, facts: dict[str, str], events: Iterable[Event | None], details: Details
) -> Finding[Details]:
    """The finding about a write that harmed nothing saved."""
    return Finding(
        cause="silent_overwrite",
        confidence=Confidence.PROVEN,
        facts=facts,
        tensors=(fact,),
        events=tuple(e for e in events if e is not None),
        variant=details.way.value,
        details=details,
    )


def _facts(scene: Scene, fact: TensorFact, write: TraceEvent, **more: str) -> dict[str, str]:
    """What is told of a write that harmed nothing saved, and `more`."""
    backward = moment(scene, "backward")
    return {
        **dict.fromkeys(EXAMPLE, ""),
        "tensor": fact.names[0] if fact.names else "",
        "write": write.place.source,
        "write_place": label(write.place),
        "backward": backward.place.source if backward is not None else "",
        **more,
    }


def _kept_by_hook(scene: Scene) -> Finding[Details] | None:
    """What the graph saved is as it was: the hook saved nothing, it kept the tensor."""
    evidence, write = scene.incident.evidence, moment(scene, "changed")
    place: Place = evidence["place"]
    if write is None:
        return None
    fact = culprit(scene, next(iter(tensors(scene, "tensor")), None), str(evidence["kept"]))
    events = (
        Event(What.CAUSE, place, None, None, Certainty.OBSERVED),
        scene.event(What.CHANGED, write, certainty=Certainty.OBSERVED),
        event(scene, What.FAILED, "backward"),
    )
    facts = _facts(
        scene,
        fact,
        write,
        saver=place.source,
        saver_place=label(place),
        node=str(evidence["node"]),
    )
    return _unsaved(fact, facts, events, Details(Way.KEPT, operand=str(evidence["kept"])))


def _second_name(scene: Scene, way: Way) -> Finding[Details] | None:
    """What the graph saved is as it was: a name stands for other values than it was given."""
    evidence, write, used = scene.incident.evidence, moment(scene, "changed"), moment(scene, "used")
    if write is None:
        return None
    copied: tuple[tuple[Place, str], ...] = evidence["copied"]
    gradients = [operand for _, operand in copied] if way is Way.GRADIENT else []
    names = (evidence["written"], evidence["kept"], *gradients)
    names = tuple(dict.fromkeys(n for n in names if n))
    fact = culprit(scene, next(iter(tensors(scene, "tensor")), None), *names)
    place = copied[0][0] if copied and way is not Way.GIVEN else None
    events = (
        scene.event(What.CHANGED, write, certainty=Certainty.OBSERVED),
        None if place is None else Event(What.CREATED, place, relation=Relation.ALIAS),
        None if way is Way.GRADIENT else event(scene, What.FAILED, "backward"),
    )
    facts = _facts(
        scene,
        fact,
        write,
        saver=place.source if place is not None else "",
        saver_place=label(place) if place is not None else "",
        node=str(evidence["kept"]),
        operand=names[0],
        used=used.place.source if used is not None else "",
    )
    writes = tuple(m.place for m in moments(scene, "changed"))
    return _unsaved(fact, facts, events, Details(way, copied=copied, writes=writes))


def _handed_out(scene: Scene) -> Finding[Details] | None:
    """The call that gave out the value is told as the write: the writer is a node of its graph."""
    write, outputs = moment(scene, "changed"), scene.incident.evidence["outputs"]
    if write is None:
        return None
    made, first = graph_made(scene, write.place), outputs[0]
    names = (first.key,) if isinstance(first.key, str) else ()
    tensor = next(iter(tensors(scene, "tensor")), None)
    fact = culprit(scene, tensor, *names, *(o.node for o in outputs))
    events = (
        None if made.place is None else Event(What.CAUSE, made.place),
        scene.event(What.CHANGED, write, certainty=Certainty.OBSERVED),
        event(scene, What.FAILED, "backward"),
    )
    facts = _facts(scene, fact, write, saver=made.name, node=first.node, operand=first.writer)
    return _unsaved(fact, facts, events, Details(Way.HANDED_OUT, graph=made))


def _details(scene: Scene, way: Way) -> Details:
    saver, write, alias = (moment(scene, role) for role in ("saved", "changed", "alias"))
    shared = moment(scene, "shared")
    level, failed = _levels(write, moment(scene, "backward"))
    parameter = bool(scene.incident.evidence.get("parameter"))
    saving = {place.line_id for m in moments(scene, "saved") for place in m.path}
    apart = level is not None and level.line_id not in saving  # what a copy computes trains it
    asked, handed = _asked(scene, write, level) if parameter and apart else (False, None)
    return Details(
        way=way,
        parameter=parameter,
        asked=asked,
        handed=handed,
        alias=alias.operands[0] if alias and alias.operands else "",
        written=write.target if write else "",
        operand=_operand(saver, alias, _kept_for(scene, saver)[1]),
        write=level,
        failed=failed,
        shared=None if shared is None else shared.place,
    )


def _asked(
    scene: Scene, write: TraceEvent | None, level: Place | None
) -> tuple[bool, Place | None]:
    """Whether the statement at a level calls the function that wrote for its result (a preview with
    averaged weights), and the module in that call: it is the model's, and trained on."""
    source, statement = scene.program.source_at(level), scene.program.statement_at(level)
    tensor = next(iter(tensors(scene, "tensor")), None)
    inner = [] if write is None else [p.function for p in write.path]
    if source is None or statement is None or tensor is None:
        return False, None
    effect = statement.value if isinstance(statement, ast.Expr) else None
    for call in (n for n in ast.walk(statement) if isinstance(n, ast.Call) and n is not effect):
        if called_name(call) in inner:
            given = values_given(call)
            values = [scene.slicer.value(scene.slicer.at(source, node)) for node in given]
            held = [n for n, v in zip(given, values, strict=True) if _holds(v, tensor)]
            places = [source.place(n.lineno, None, n) for n in held]
            return True, places[0] if len(places) == 1 else None
    return False, None


def _holds(value: object, tensor: torch.Tensor) -> bool:
    return isinstance(value, torch.nn.Module) and any(p is tensor for p in value.parameters())


def _levels(
    write: TraceEvent | None, backward: TraceEvent | None
) -> tuple[Place | None, Place | None]:
    """Write and backward at the level where they differ."""
    if write is None or backward is None:
        return None, None
    level, failed = at_one_level([write.path, backward.path])
    return level, failed


def _source_names(scene: Scene) -> tuple[str, ...]:
    """How the writing and the saving statement call the tensor."""
    alias, write, saver = (moment(scene, role) for role in ("alias", "changed", "saved"))
    names = list(alias.operands[:1]) if alias is not None else []
    shared = moment(scene, "shared")
    if shared is not None:  # `scores.detach().numpy()`: the user knows `scores`
        names += [o.removesuffix(".detach()") for o in shared.operands[:1]]
    if write is not None and write.target:
        names.append(write.target.removesuffix(".data"))
    if saver is not None:
        evidence = scene.incident.evidence
        if _kept_for(scene, saver)[1] == "result":
            names.append(saver.target)
        elif not evidence.get("parameter"):
            names += _plain(saver)
    return tuple(names)


def _operand(saver: TraceEvent | None, alias: TraceEvent | None, slot: str) -> str:
    """What the saving statement calls the tensor written through `.data`: the same path, or the
    only one that ends in the same attribute (`clusters.centres`, `self.centres`)."""
    written = alias.operands[0] if alias is not None and alias.operands else ""
    if saver is None or not written or slot == "result":
        return ""
    read = [n for o in saver.operands if o for n in ast.walk(ast.parse(o, mode="eval"))]
    paths = {ast.unparse(n) for n in read if isinstance(n, (ast.Name, ast.Attribute))}
    tail = written.rpartition(".")
    alike = [p for p in paths if tail[1] and p.rpartition(".")[1:] == tail[1:]]
    return written if written in paths else alike[0] if len(alike) == 1 else ""


def _plain(saver: TraceEvent) -> list[str]:
    """The only operand, where there is one."""
    return [o for o in saver.operands if o] if len(saver.operands) == 1 else []


def _kept_for(scene: Scene, saver: TraceEvent | None) -> tuple[str, str]:
    """The node that a line made and the slot in which it keeps the tensor."""
    evidence = scene.incident.evidence
    first = str(evidence.get("node", "")), str(evidence.get("slot", ""))
    savers: Mapping[int, tuple[str, str]] = evidence.get("savers", {})
    return first if saver is None else savers.get(saver.order, first)


def _events(scene: Scene, way: Way) -> tuple[Event, ...]:
    version = scene.incident.evidence.get("version") if way in _UNCOUNTED else None
    seen = Certainty.INFERRED if way is Way.NUMPY else Certainty.OBSERVED
    # One expression may save for several nodes, as a whole network does: it is told once.
    savers = {(m.place, m.chain): m for m in reversed(moments(scene, "saved"))}
    saved = [_saved(scene, m, version) for m in reversed(savers.values())]
    found = [
        *saved,
        _changed(scene, way, seen, version),
        _alias(scene),
        event(scene, What.FAILED, "backward"),
    ]
    return tuple(e for e in found if e is not None)


def _changed(scene: Scene, way: Way, seen: Certainty, version: int | None) -> Event | None:
    """The guilty write; NumPy's is no operation of torch."""
    written = scene.event(What.CHANGED, moment(scene, "changed"), certainty=seen, version=version)
    return replace(written, op=None) if written is not None and way is Way.NUMPY else written


def _saved(scene: Scene, saver: TraceEvent, version: int | None) -> Event | None:
    op, _ = _kept_for(scene, saver)
    return scene.event(What.SAVED, saver, certainty=Certainty.OBSERVED, op=op, version=version)


def _alias(scene: Scene) -> Event | None:
    """The line that made the `.data` alias, where the write itself does not show it."""
    alias, write = moment(scene, "alias"), moment(scene, "changed")
    if alias is None or write is None or alias.place.line == write.place.line:
        return None
    return scene.event(What.CREATED, alias, certainty=Certainty.OBSERVED, relation=Relation.ALIAS)
