"""An optimizer steps in vain: a line froze its parameters, and none thawed them in time."""

from dataclasses import dataclass

from autograd_explain.inspect.facts.call_levels import at_one_level
from autograd_explain.inspect.facts.opposite_method import opposite_method
from autograd_explain.inspect.facts.silent_evidence import (
    culprit,
    event,
    listed,
    moment,
    name_of,
    optimizer_name,
    tensors,
)
from autograd_explain.inspect.history import TraceEvent
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

PATTERNS = ("frozen-while-stepped",)

EXAMPLE = {
    "parameter": "D[0].weight",
    "parameters": "D[0].weight, D[0].bias, D[2].weight, D[2].bias",
    "count": "4",
    "optimizer": "opt_d",
    "step": "opt_d.step()",
    "place": "In[2]:6",
    "frozen": "D.requires_grad_(False)",
    "frozen_place": "In[2]:8",
    "backward": "loss_d.backward()",
    "turn": "opt_g.step()",
    "turn_place": "In[2]:12",
    "thawed": "",
    "thawed_place": "?",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by.  Places are those at the level at which what was frozen can be
    thawed."""

    frozen: tuple[Place, ...]  #: and, behind that, the lines within
    turn: Place | None  #: the step of the optimizer for which it was frozen
    step: Place
    thawed: Place | None  #: the statement that does it too late
    opposite: str  #: the method that takes back what a library's one has done


def diagnose(scene: Scene) -> Finding[Details] | None:
    frozen, step, turn, thawed = (moment(scene, r) for r in ("frozen", "step", "turn", "thawed"))
    if frozen is None or step is None:
        return None
    parameters = tensors(scene, "parameters")
    # The parameters of a model that lived in a function are gone when it has returned.
    names = tuple(name_of(scene, p) for p in parameters) or scene.incident.evidence["shapes"]
    level, other = at_one_level([frozen.path, (step if turn is None else turn).path])
    thaw = None if thawed is None else _beside(thawed, frozen, level)
    optimizer = optimizer_name(scene)
    causes = (Event(What.CAUSE, p, certainty=Certainty.OBSERVED) for p in (level, thaw) if p)
    events = (*causes, event(scene, What.FAILED, "step"))
    return Finding(
        cause="frozen_while_stepped",
        confidence=Confidence.PROVEN,
        facts={
            "parameter": next(iter(names), ""),
            "parameters": listed(names),
            "count": str(scene.incident.evidence.get("count", len(names))),
            "optimizer": optimizer or step.place.source,
            "step": step.place.source,
            "place": label(step.place),
            "backward": _line(moment(scene, "backward")),
            **line_facts(
                frozen=level,
                turn=None if turn is None else turn.place,
                thawed=thaw,
            ),
        },
        tensors=(culprit(scene, next(iter(parameters), None), _module(names), *names[1:4]),),
        events=tuple(e for e in events if e is not None),
        variant="" if thaw is None else "late",
        details=Details(
            frozen=frozen.path[frozen.path.index(level) :],
            turn=None if turn is None else other,
            step=step.place if turn is not None else other,
            thawed=thaw,
            opposite=opposite_method(scene, level),
        ),
        awaited=names[:1] if parameters else (),
        awaits_steps=True,
    )


def _beside(thawed: TraceEvent, frozen: TraceEvent, level: Place) -> Place:
    """The thawing statement at the depth of the freezing one."""
    depth = frozen.path.index(level)
    return thawed.path[min(depth, len(thawed.path) - 1)]


def _line(moment: TraceEvent | None) -> str:
    return "" if moment is None else moment.place.source


def _module(names: tuple[str, ...]) -> str:
    """`D` of `D[0].weight` and `D[2].bias`, "" where they have no more in common."""
    if not names:
        return ""
    found = names[0]
    while found and not all(n.startswith((f"{found}.", f"{found}[")) for n in names):
        found = found[: max(found.rfind("."), found.rfind("["), 0)]
    return found
