"""A backward behind a loop goes back through the last round's loss, and through no other."""

from dataclasses import dataclass

from autograd_explain.inspect.facts.silent_evidence import culprit, event, moment
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import (
    Certainty,
    Confidence,
    Event,
    Finding,
    Place,
    What,
    label,
    line_facts,
)

PATTERNS = ("last-round-only",)

EXAMPLE = {
    "loss": "loss",
    "rounds": "4",
    "bound": "loss = nn.functional.mse_loss(model(x), y)",
    "bound_place": "In[2]:4",
    "backward": "loss.backward()",
    "place": "In[2]:5",
    "step": "optimizer.step()",
    "sum": "",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by; `each` says that the loop clears the gradients in every round, `sum`
    is the name that it adds the losses to."""

    loss: str
    loop: Place
    bound: Place
    backward: Place
    step: Place
    each: bool
    sum: str


def diagnose(scene: Scene) -> Finding[Details] | None:
    evidence = scene.incident.evidence
    backward, step = moment(scene, "backward"), moment(scene, "step")
    if backward is None or step is None:
        return None
    loss, bound, each = str(evidence["name"]), evidence["bound"], bool(evidence["each"])
    binds = Event(What.CREATED if each else What.CAUSE, bound, certainty=Certainty.OBSERVED)
    asks = event(scene, What.CAUSE if each else What.FAILED, "backward")
    events = (asks, binds) if each else (binds, asks)
    return Finding(
        cause="last_round_only",
        confidence=Confidence.PROVEN,
        facts={
            "loss": loss,
            "rounds": str(evidence["rounds"]),
            **line_facts(bound=bound),
            "backward": backward.place.source,
            "place": label(backward.place),
            "step": step.place.source,
            "sum": str(evidence["sum"]),
        },
        tensors=(culprit(scene, None, loss),),
        events=tuple(e for e in events if e is not None),
        variant="each" if each else "",
        details=Details(
            loss,
            evidence["loop"],
            bound,
            backward.place,
            step.place,
            each,
            str(evidence["sum"]),
        ),
    )
