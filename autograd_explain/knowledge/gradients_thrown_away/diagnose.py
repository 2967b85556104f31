"""Gradients, or changes of them, that no step could use: cleared before it, in all rounds but the
last or in every one, or changed when there were none."""

from dataclasses import dataclass

from autograd_explain.inspect.facts.silent_evidence import event, moment, name_of, optimizer_name
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import (
    Confidence,
    Finding,
    Place,
    Role,
    TensorFact,
    What,
    label,
    line_facts,
)

PATTERNS = ("gradients-thrown-away", "gradients-changed-too-late", "gradients-changed-too-early")

EXAMPLE = {
    "optimizer": "optimizer",
    "cleared": "optimizer.zero_grad()  # start the step clean",
    "place": "In[2]:4",
    "backward": "loss.backward()",
    "step": "optimizer.step()",
    "change": "",
    "change_place": "?",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    backward: Place
    step: Place
    change: Place | None = None  #: of the gradients, behind the step or before backward
    rounds: bool = False  #: the step finds those of the last of several rounds


def diagnose(scene: Scene) -> Finding[Details] | None:
    backward, step = moment(scene, "backward"), moment(scene, "step")
    guilty = next((r for r in ("late", "early", "cleared") if moment(scene, r) is not None), None)
    if guilty is None or backward is None or step is None:
        return None
    cleared = moment(scene, "cleared")
    changed = None if guilty == "cleared" else moment(scene, guilty)
    change = None if changed is None else changed.place
    cause = event(scene, What.CAUSE, guilty)
    parameters = _parameters(scene)
    rounds = bool(scene.incident.evidence.get("rounds"))
    finds_none = change is None and not rounds
    return Finding(
        cause="gradients_thrown_away",
        confidence=Confidence.PROVEN,
        facts={
            "optimizer": optimizer_name(scene),
            "cleared": "" if cleared is None else cleared.place.source,
            "place": "?" if cleared is None else label(cleared.place),
            "backward": backward.place.source,
            "step": step.place.source,
            **line_facts(change=change),
        },
        tensors=parameters,
        events=() if cause is None else (cause,),
        variant="rounds" if rounds else "" if change is None else guilty,
        awaited=parameters[0].names[:1] if parameters and finds_none else (),
        awaits_steps=finds_none,
        details=Details(backward.place, step.place, change, rounds),
    )


def _parameters(scene: Scene) -> tuple[TensorFact, ...]:
    """What the optimizer steps, under the optimizer's own name too."""
    weak = scene.incident.evidence.get("optimizer")
    optimizer = None if weak is None else weak()
    if optimizer is None:
        return ()
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    names = [name_of(scene, p) for p in parameters[:4]]
    return (scene.fact(Role.CULPRIT, parameters[0], *names, optimizer_name(scene)),)
