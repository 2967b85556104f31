"""NumPy was given a tensor that requires grad."""

from autograd_explain.inspect.attribution import label
from autograd_explain.inspect.numpy_call import NumpyCall, find, used_with_gradient
from autograd_explain.inspect.origin import event_at, place_of, places_at
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Event, Finding, Role, TensorFact, What

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
        variant=_variant(found),
        places=places_at(scene, **{_how(found): found.shown}),
    )


def _culprit(scene: Scene, found: NumpyCall) -> TensorFact:
    if found.tensor is None:
        return TensorFact(Role.CULPRIT, found.names, requires_grad=True)
    fact = scene.fact(Role.CULPRIT, found.tensor)
    return TensorFact(**{**vars(fact), "names": tuple(dict.fromkeys((*found.names, *fact.names)))})


def _events(scene: Scene, found: NumpyCall) -> tuple[Event, ...]:
    """What stored the tensors, or else the line that reads them."""
    if not found.stored or used_with_gradient(scene, found):
        return (event_at(scene, What.CAUSE, found.shown, "read"),)
    how = "item" if found.numbers else "detach"
    return tuple(event_at(scene, What.CAUSE, s, how) for s in found.stored)


def _how(found: NumpyCall) -> str:
    """How the tensor is to be taken out where it is read: the name of that place."""
    if found.direct:
        return "before_numpy"
    return "as_array" if found.container is None else "each_element"


def _variant(found: NumpyCall) -> str:
    return "container" if found.stored else ""
