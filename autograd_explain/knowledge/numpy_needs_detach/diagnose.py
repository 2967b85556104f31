"""NumPy was given a tensor that requires grad."""

from dataclasses import dataclass

from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Event, Finding, Place, Role, TensorFact, What, label

from .containers import needs_graph
from .conversion import Conversion, conversion
from .differentiated import Differentiated, differentiated
from .numpy_call import NumpyCall, find
from .numpy_reads import Way

PATTERNS = ("numpy-requires-grad",)

EXAMPLE = {
    "tensor": "run.curve",
    "read": "curve = np.asarray(run.curve)",
    "place": "In[3]:1",
    "value": "error",
    "stored": "In[1]:17",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    reads: tuple[tuple[Place, Way | None], ...]
    stored: bool  #: the cause is what stored them in a container
    numbers: bool  #: and only numbers
    differentiated: Differentiated | None  #: what is computed in NumPy to be differentiated
    conversion: Conversion | None  #: of a tensor to a tensor, on the way to a derivative


def diagnose(scene: Scene) -> Finding[Details] | None:
    found = find(scene)
    if found is None:
        return None
    culprit = _culprit(scene, found)
    place = scene.place
    way = differentiated(scene, scene.surfaced or found.shown)
    storing = way is None and _is_storing(scene, found)
    return Finding(
        cause="numpy_needs_detach",
        confidence=Confidence.LIKELY if found.inside else Confidence.PROVEN,
        facts={
            "tensor": found.names[0] if found.names else found.shown.text,
            "read": "" if place is None else place.source,
            "place": label(scene.place_at(found.shown)),
            "value": found.stored[0].text if found.stored else "",
            "stored": label(scene.place_at(found.stored[0])) if found.stored else "",
        },
        tensors=(culprit,),
        events=(*_events(scene, found, storing), scene.failed()),
        variant="container" if found.stored else "",
        details=_details(scene, found, storing, way),
    )


def _culprit(scene: Scene, found: NumpyCall) -> TensorFact:
    if found.tensor is None:
        return TensorFact(Role.CULPRIT, found.names, requires_grad=True)
    fact = scene.fact(Role.CULPRIT, found.tensor)
    return TensorFact(**{**vars(fact), "names": tuple(dict.fromkeys((*found.names, *fact.names)))})


def _events(scene: Scene, found: NumpyCall, storing: bool) -> tuple[Event, ...]:
    """What stored the tensors, or else the line that reads them."""
    blamed = found.stored if storing else (found.shown,)
    return tuple(scene.event_at(What.CAUSE, s) for s in blamed)


def _is_storing(scene: Scene, found: NumpyCall) -> bool:
    container = found.reads[0].container
    return bool(found.stored) and container is not None and not needs_graph(scene, container)


def _details(scene: Scene, found: NumpyCall, storing: bool, way: Differentiated | None) -> Details:
    placed = [(scene.place_at(r.spot), r.way) for r in found.reads]
    reads = tuple((place, way) for place, way in placed if place is not None)
    converted = None if way is None else conversion(scene, found)
    return Details(reads, storing, found.numbers, way, converted)
