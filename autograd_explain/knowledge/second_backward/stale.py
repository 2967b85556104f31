"""Each round's backward goes into what was computed before the parameters were updated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from autograd_explain.inspect.facts.binding import binding_of
from autograd_explain.inspect.facts.silent_evidence import culprit, moment, moments
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Certainty, Confidence, Finding, What, line_facts
from autograd_explain.nodes import sequence_of

from .details import Details, to_repeat
from .reason import Why

VARIANT = "stale"


def stale(scene: Scene, example: Mapping[str, str]) -> Finding[Details] | None:
    """The finding where nothing was freed, or the graph was kept: nothing raised, and the gradient
    is that of old values."""
    made, step, backward = moments(scene, "made"), moment(scene, "step"), moment(scene, "backward")
    used = moment(scene, "used")
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
    paths = [m.path for m in sorted(made, key=lambda m: m.order)]
    reader = None if used is None else used.path
    details = to_repeat(Why.COMPUTED_ONCE, backward.path, reader, paths)
    return Finding(
        cause="second_backward",
        confidence=Confidence.PROVEN,
        facts={name: known.get(name, "") for name in example},
        tensors=(fact,),
        events=tuple(e for e in events if e is not None),
        variant=VARIANT,
        details=replace(details, tensor=tensor),
    )
