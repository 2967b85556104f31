"""NumPy was given a tensor that requires grad."""

from autograd_explain.inspect.facts.expressions import event_at, place_of, places_of
from autograd_explain.inspect.facts.overwrite import label
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Event, Finding, Place, Role, TensorFact, What

from .containers import needs_graph
from .numpy_call import NumpyCall, find

PATTERNS = ("numpy-requires-grad",)

EXAMPLE = {
    "tensor": "run.curve",
    "read": "curve = np.asarray(run.curve)",
    "place": "In[3]:1",
    "value": "error",
    "stored": "In[1]:17",
}


def diagnose(scene: Scene) -> Finding | None:
    found = find(scene)
    if found is None:
        return None
    culprit = _culprit(scene, found)
    place = scene.place
    return Finding(
        cause="numpy_needs_detach",
        confidence=Confidence.PROVEN,
        facts={
            "tensor": found.names[0] if found.names else found.shown.text,
            "read": "" if place is None else place.source,
            "place": label(place_of(scene, found.shown)),
            "value": found.stored[0].text if found.stored else "",
            "stored": label(place_of(scene, found.stored[0])) if found.stored else "",
        },
        tensors=(culprit,),
        events=(*_events(scene, found), scene.failed()),
        variant="container" if found.stored else "",
        places=_places(scene, found),
    )


def _culprit(scene: Scene, found: NumpyCall) -> TensorFact:
    if found.tensor is None:
        return TensorFact(Role.CULPRIT, found.names, requires_grad=True)
    fact = scene.fact(Role.CULPRIT, found.tensor)
    return TensorFact(**{**vars(fact), "names": tuple(dict.fromkeys((*found.names, *fact.names)))})


def _events(scene: Scene, found: NumpyCall) -> tuple[Event, ...]:
    """What stored the tensors, or else the line that reads them."""
    container = found.reads[0].container
    if not found.stored or container is None or needs_graph(scene, container):
        return (event_at(scene, What.CAUSE, found.shown, "read"),)
    how = "item" if found.numbers else "detach"
    return tuple(event_at(scene, What.CAUSE, s, how) for s in found.stored)


def _places(scene: Scene, found: NumpyCall) -> dict[str, tuple[Place, ...]]:
    """The expressions to take out of the graph, by how that is done."""
    ways = dict.fromkeys(read.how for read in found.reads)
    return {how: places_of(scene, (r.spot for r in found.reads if r.how == how)) for how in ways}
