"""An optimizer steps in vain: a line froze its parameters, and none thawed them in time; or froze
them in the midst of a loss; or froze a shallow copy, which has the same ones."""

from dataclasses import dataclass

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.call_levels import at_one_level
from autograd_explain.inspect.facts.freezing import freezers_of, frozen_modules
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
    "used": "",
    "used_place": "?",
    "copy": "",
    "copy_place": "?",
    "original": "",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by.  Places are those at the level at which what was frozen can be
    thawed."""

    frozen: tuple[Place, ...] = ()  #: and, behind that, the lines within
    turn: Place | None = None  #: the step of the optimizer for which it was frozen
    step: Place | None = None
    thawed: Place | None = None  #: the statement that does it too late
    opposite: str = ""  #: the method that takes back what a library's one has done
    backward: Place | None = None  #: the one that drops the gradient
    optimizer: str = ""  #: what is stepped, as the function that goes backward calls it
    copied: Place | None = None  #: the call whose copy was frozen


def diagnose(scene: Scene) -> Finding[Details] | None:
    frozen, step = moment(scene, "frozen"), moment(scene, "step")
    if frozen is None or step is None:
        return None
    used, turn = moment(scene, "used"), moment(scene, "turn")
    if used is not None:
        return _between(scene, frozen, used, step)
    copied = _copied(scene, frozen) if turn is None else None
    if copied is not None or scene.incident.evidence.get("shallow"):
        return None if copied is None else _of_copy(scene, copied, frozen)
    level, other = at_one_level([frozen.path, (turn or step).path])
    thawed = moment(scene, "thawed")
    thaw = None if thawed is None else _beside(thawed, frozen, level)
    details = Details(
        frozen=frozen.path[frozen.path.index(level) :],
        turn=None if turn is None else other,
        step=other if turn is None else step.place,
        thawed=thaw,
        opposite=opposite_method(scene, level),
    )
    places = line_facts(frozen=level, turn=None if turn is None else turn.place, thawed=thaw)
    causes = [p for p in (level, thaw) if p is not None]
    return _finding(scene, "" if thaw is None else "late", causes, places, details)


def _between(
    scene: Scene, frozen: TraceEvent, used: TraceEvent, step: TraceEvent
) -> Finding[Details]:
    """It was frozen when the loss had been computed of it, which its backward finds."""
    level, use = at_one_level([frozen.path, used.path])
    before, own = at_one_level([(moment(scene, "backward") or step).path, step.path])
    stepped = "".join(step.operands[:1]) if own == step.place else ""
    details = Details(backward=before, optimizer=stepped)
    return _finding(scene, "between", [level], line_facts(frozen=level, used=use), details)


def _of_copy(scene: Scene, copied: ExprAt, frozen: TraceEvent) -> Finding[Details]:
    """It was frozen with a shallow copy."""
    original, place = copied.argument(0), scene.slicer.place(copied)
    facts = line_facts(frozen=frozen.place)
    facts |= {"copy": copied.text, "copy_place": label(place)}
    facts["original"] = "" if original is None else original.text
    return _finding(scene, "copy", [place, frozen.place], facts, Details(copied=place))


def _copied(scene: Scene, frozen: TraceEvent) -> ExprAt | None:
    """The call of a shallow copy that made what the line freezes."""
    line = frozen.place.line_id
    freezers = (f for f in freezers_of(scene) if scene.slicer.place(f).line_id == line)
    modules = (module for freezer in freezers for module in frozen_modules(scene, freezer))
    makers = (maker for module in modules for maker in scene.slicer.makers(module))
    return next((maker for maker in makers if maker.called == "copy" and maker.argument(0)), None)


def _finding(
    scene: Scene, variant: str, causes: list[Place], facts: dict[str, str], details: Details
) -> Finding[Details]:
    parameters, step = tensors(scene, "parameters"), moment(scene, "step")
    # The parameters of a model that lived in a function are gone when it has returned.
    names = tuple(name_of(scene, p) for p in parameters) or scene.incident.evidence["shapes"]
    blamed = (Event(What.CAUSE, p, certainty=Certainty.OBSERVED) for p in causes)
    events = (*blamed, event(scene, What.FAILED, "step"))
    called = _module(names), facts.get("original", ""), *names[1:4]
    return Finding(
        cause="frozen_while_stepped",
        confidence=Confidence.PROVEN,
        facts={
            **line_facts(turn=None, thawed=None, used=None, copy=None),
            "original": "",
            "parameter": next(iter(names), ""),
            "parameters": listed(names),
            "count": str(scene.incident.evidence.get("count", len(names))),
            "optimizer": optimizer_name(scene) or _line(step),
            "step": _line(step),
            "place": label(None if step is None else step.place),
            "backward": _line(moment(scene, "backward")),
            **facts,
        },
        tensors=(culprit(scene, next(iter(parameters), None), *called),),
        events=tuple(e for e in events if e is not None),
        variant=variant,
        details=details,
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
