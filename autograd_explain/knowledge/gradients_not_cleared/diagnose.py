"""Gradients that a step has used already are still in the sum when the next step comes."""

from dataclasses import dataclass

from autograd_explain.inspect.facts.silent_evidence import event, moment, name_of, optimizer_name
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Place, Role, TensorFact, What, label

PATTERNS = ("gradients-not-cleared",)

EXAMPLE = {
    "optimizer": "optimizer",
    "step": "optimizer.step()",
    "place": "In[2]:4",
    "backward": "loss.backward()",
    "parameter": "model.weight",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    own_backward: Place | None  #: of the loss that the step is meant for


def diagnose(scene: Scene) -> Finding[Details] | None:
    step, backward = moment(scene, "step"), moment(scene, "backward")
    if step is None or backward is None:
        return None
    weak = scene.incident.evidence.get("optimizer")
    optimizer = None if weak is None else weak()
    parameters = [p for g in optimizer.param_groups for p in g["params"]] if optimizer else []
    names = [name_of(scene, p) for p in parameters[:4]]
    name = optimizer_name(scene)
    facts = (scene.fact(Role.CULPRIT, parameters[0], *names, name),) if parameters else ()
    cause, own = event(scene, What.CAUSE, "step"), moment(scene, "own_backward")
    return Finding(
        cause="gradients_not_cleared",
        confidence=Confidence.PROVEN,
        facts={
            "optimizer": name,
            "step": step.place.source,
            "place": label(step.place),
            "backward": backward.place.source,
            "parameter": names[0] if names else "",
        },
        tensors=facts or (TensorFact(Role.CULPRIT, (name,)),),
        events=() if cause is None else (cause,),
        details=Details(None if own is None else own.place),
    )
