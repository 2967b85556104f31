"""Each round's backward goes into what was computed before the parameters were updated."""

from __future__ import annotations

from collections.abc import Mapping

from autograd_explain.inspect.facts.binding import binding_of
from autograd_explain.inspect.facts.call_levels import at_one_level, distinct
from autograd_explain.inspect.facts.silent_evidence import culprit, moment, moments
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Certainty, Confidence, Finding, What, line_facts
from autograd_explain.nodes import sequence_of

from .details import CONSTRUCTORS, Details
from .reason import Why

VARIANT = "stale"


def stale(scene: Scene, example: Mapping[str, str]) -> Finding[Details] | None:
    """The finding where nothing was freed, or the graph was kept: nothing raised, and the gradient
    is that of old values."""
    made, step, backward = moments(scene, "made"), moment(scene, "step"), moment(scene, "backward")
    if not made or step is None or backward is None:
        return None
    kept = binding_of(scene.program, made[0])
    numbers = scene.incident.evidence.get("numbers", ())
    live = [n.tensor for n in scene.names.tensors if not n.tensor.is_leaf]
    old = (t for t in live if sequence_of(t.grad_fn) in numbers)
    fact = culprit(scene, next(old, None), *kept.names)
    tensor = fact.names[0] if fact.names else made[0].place.source
    known = {
        **line_facts(maker=kept.place, step=step.place, failed=backward.place),
        "tensor": tensor,
    }
    marks = ((What.CAUSE, made[0]), (What.FAILED, backward))
    events = (scene.event(what, at, certainty=Certainty.OBSERVED) for what, at in marks)
    return Finding(
        cause="second_backward",
        confidence=Confidence.PROVEN,
        facts={name: known.get(name, "") for name in example},
        tensors=(fact,),
        events=tuple(e for e in events if e is not None),
        variant=VARIANT,
        details=_details(made, moment(scene, "used"), backward, tensor),
    )


def _details(
    made: tuple[TraceEvent, ...], used: TraceEvent | None, backward: TraceEvent, tensor: str
) -> Details:
    """Where the value is made and read, at the level of the backward."""
    paths = [m.path for m in sorted(made, key=lambda m: m.order)]
    constructed = distinct(p for path in paths for p in path if p.function in CONSTRUCTORS)
    if constructed and used is not None:
        uses = used.path
        return Details(Why.COMPUTED_ONCE, tensor, made=constructed, attribute_uses=uses)
    if used is None:
        use, *old = at_one_level([backward.path, *paths])
    else:
        _, use, *old = at_one_level([backward.path, used.path, *paths])
    return Details(Why.COMPUTED_ONCE, tensor, use=use, old=distinct(old))
