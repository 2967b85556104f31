"""Gradients that a step has used already are still in the sum when the next step comes."""

import ast
from dataclasses import dataclass

from autograd_explain.inspect.facts.silent_evidence import (
    culprit,
    event,
    moment,
    moments,
    name_of,
    optimizer_name,
    tensors,
)
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import (
    Certainty,
    Confidence,
    Finding,
    Place,
    Role,
    TensorFact,
    What,
    label,
    line_facts,
)

PATTERNS = ("gradients-not-cleared",)

EXAMPLE = {
    "optimizer": "optimizer",
    "step": "optimizer.step()",
    "place": "In[2]:4",
    "backward": "loss.backward()",
    "parameter": "model.weight",
    "backward_place": "In[2]:3",
    "own": "",
    "own_place": "?",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    step: Place | None = None
    own_backward: Place | None = None  #: of the loss that the step is meant for
    #: Updates by hand or reads of the sum, each with the leaf it is of.
    updates: tuple[tuple[Place, str], ...] = ()
    backward: Place | None = None


def diagnose(scene: Scene) -> Finding[Details] | None:
    step, backward = moment(scene, "step"), moment(scene, "backward")
    if moments(scene, "updated"):
        return _by_hand(scene, backward)
    if moments(scene, "read"):
        return _read(scene, backward)
    if step is None or backward is None:
        return None
    weak = scene.incident.evidence.get("optimizer")
    optimizer = None if weak is None else weak()
    parameters = [p for g in optimizer.param_groups for p in g["params"]] if optimizer else []
    names = [name_of(scene, p) for p in parameters[:4]]
    name = optimizer_name(scene)
    facts = (scene.fact(Role.CULPRIT, parameters[0], *names, name),) if parameters else ()
    own = moment(scene, "own_backward")
    others = bool(scene.incident.evidence.get("others"))
    cause = event(scene, What.CAUSE, "backward" if others else "step")
    return Finding(
        cause="gradients_not_cleared",
        confidence=Confidence.PROVEN,
        facts={
            "optimizer": name,
            "step": step.place.source,
            "place": label(step.place),
            "parameter": names[0] if names else "",
            **line_facts(backward=backward.place, own=None if own is None else own.place),
        },
        variant="others" if others else "",
        tensors=facts or (TensorFact(Role.CULPRIT, (name,)),),
        events=() if cause is None else (cause,),
        details=Details(step.place, None if own is None else own.place),
    )


def _by_hand(scene: Scene, backward: TraceEvent | None) -> Finding[Details]:
    """Leaves that the program's own lines update."""
    updates = moments(scene, "updated")
    leaves = [u.target.removesuffix(".data") for u in updates]
    return _of_leaves(scene, backward, updates, leaves, "by_hand")


def _read(scene: Scene, backward: TraceEvent | None) -> Finding[Details] | None:
    """Leaves whose gradient the program keeps behind one backward after the other."""
    found = [(moment, _leaf_read(scene, moment.place)) for moment in moments(scene, "read")]
    reads = tuple(moment for moment, leaf in found if leaf)
    leaves = [leaf for _, leaf in found if leaf]
    return _of_leaves(scene, backward, reads, leaves, "read") if reads else None


def _leaf_read(scene: Scene, place: Place) -> str:
    """`x` of the `x.grad` that a line reads; "" where it reads several."""
    statement = scene.program.statement_at(place)
    nodes = () if statement is None else ast.walk(statement)
    grads = (n for n in nodes if isinstance(n, ast.Attribute) and n.attr == "grad")
    leaves = {ast.unparse(n.value) for n in grads if isinstance(n.ctx, ast.Load)}
    return leaves.pop() if len(leaves) == 1 else ""


def _of_leaves(
    scene: Scene,
    backward: TraceEvent | None,
    updates: tuple[TraceEvent, ...],
    leaves: list[str],
    variant: str,
) -> Finding[Details]:
    tensor = next(iter(tensors(scene, "parameters")), None)
    kept = [f"{leaf}.grad" for leaf in leaves if leaf]
    events = (scene.event(What.CAUSE, u, certainty=Certainty.OBSERVED) for u in updates)
    return Finding(
        cause="gradients_not_cleared",
        confidence=Confidence.PROVEN,
        facts={
            "optimizer": "",
            "step": updates[0].place.source,
            "place": label(updates[0].place),
            "parameter": leaves[0],
            **line_facts(backward=None if backward is None else backward.place, own=None),
        },
        tensors=(culprit(scene, tensor, *leaves, *kept),),
        events=tuple(e for e in events if e is not None),
        variant=variant,
        details=Details(
            updates=tuple((u.place, x) for u, x in zip(updates, leaves, strict=True)),
            backward=None if backward is None else backward.place,
        ),
    )
