"""Parameters stop getting a gradient: a call took their values out of the graph, and left it so."""

from dataclasses import dataclass

from autograd_explain.inspect.facts.call_levels import at_one_level
from autograd_explain.inspect.facts.library_cache import caching_options
from autograd_explain.inspect.facts.memoization import Memoized, remembered
from autograd_explain.inspect.facts.opposite_method import opposite_method
from autograd_explain.inspect.facts.silent_evidence import (
    culprit,
    event,
    listed,
    moment,
    name_of,
    optimizer_name,
    tensors,
    text_of,
)
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

PATTERNS = ("gradient-stopped",)

EXAMPLE = {
    "parameter": "model[0].down",
    "parameters": "model[0].down, model[0].up",
    "count": "2",
    "call": "model[0].merge()",
    "call_place": "In[2]:6",
    "write": "self.base.weight.data += self.up @ self.down",
    "write_place": "In[1]:17",
    "inside": "",
    "opposite": "unmerge",
    "memory": "",
    "backward": "loss.backward()",
    "optimizer": "optimizer",
    "step": "optimizer.step()",
    "place": "In[2]:5",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    call: Place
    opposite: str  #: the method that takes back what the call does, "" where none is known
    memory: Memoized | None = None  #: what has the value computed once and handed out from then on
    options: tuple[tuple[Place, str], ...] = ()  #: by which a library's object does


def diagnose(scene: Scene) -> Finding[Details] | None:
    cut, step, backward = (moment(scene, r) for r in ("cut", "step", "backward"))
    if cut is None or step is None or backward is None:
        return None
    parameters = tensors(scene, "parameters")
    # The parameters of a model that lived in a function are gone when it has returned.
    names = tuple(name_of(scene, p) for p in parameters) or scene.incident.evidence["shapes"]
    level, _ = at_one_level([cut.path, backward.path])
    inner = cut.path[cut.path.index(level) :]
    found = next(((p, m) for p in inner if (m := opposite_method(scene, p))), (cut.place, ""))
    call, opposite = found
    memory = remembered(scene.program, (cut.place,))
    by_library = bool(scene.incident.evidence.get("handed_out"))
    options = caching_options(scene, graph=True) if by_library else ()
    if by_library and not options:  # a bank of old values hands them out as its user has asked it
        return None
    again = memory is not None or by_library
    call, opposite = (cut.place, "") if again else (call, opposite)
    kept = text_of(scene, cut.place) if by_library else ""
    causes = dict.fromkeys((call, cut.place))
    seen = (Event(What.CAUSE, p, certainty=Certainty.OBSERVED, inside=cut.inside) for p in causes)
    made = (Event(What.CAUSE, place) for place, _ in options)
    failed = event(scene, What.FAILED, "step")
    return Finding(
        cause="gradient_stopped",
        confidence=Confidence.PROVEN,
        facts={
            "parameter": next(iter(names), ""),
            "parameters": listed(names),
            "count": str(scene.incident.evidence.get("count", len(names))),
            **line_facts(call=call, write=cut.place),
            "inside": "" if cut.inside is None else cut.inside.source,
            "opposite": opposite,
            "memory": kept if memory is None else memory.name,
            "backward": backward.place.source,
            "optimizer": optimizer_name(scene) or step.place.source,
            "step": step.place.source,
            "place": label(step.place),
        },
        tensors=(culprit(scene, next(iter(parameters), None), *names[1:4]),),
        events=(*made, *seen, *(() if failed is None else (failed,))),
        variant="remembered" if again else "",
        details=Details(call, opposite, memory, options),
    )
