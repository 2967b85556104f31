"""The loss was computed while gradient recording was off."""

from dataclasses import dataclass

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.grad_mode import OffBy
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.facts.mode_of_library import LibraryMode
from autograd_explain.inspect.facts.no_graph import NoGraph, find
from autograd_explain.inspect.facts.value_names import cut_names
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import (
    Certainty,
    Confidence,
    Event,
    Finding,
    Place,
    Role,
    TensorFact,
    What,
    label,
)

from .differentiated_inside import Inside, differentiated_inside

PATTERNS = ("no-grad-fn",)

EXAMPLE = {
    "root": "loss",
    "off": "torch.set_grad_enabled(False)",
    "place": "In[2]:3",
    "function": "validate",
    "operation": "",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    by: OffBy | None
    unrecorded: tuple[Place, ...] = ()  #: what should have been recorded
    inside: Inside | None = None  #: a derivative is taken while recording is off


def diagnose(scene: Scene) -> Finding[Details] | None:
    found = find(scene)
    if found is None or not found.recording_off:
        return None
    if found.mode is not None:
        return _of_library(scene, found, found.mode)
    off = found.off
    place = None if off is None else scene.slicer.place_of(off.scope, off.node)
    cause = () if off is None else (Event(What.CAUSE, place),)
    root = found.fact
    names = root.names if found.cut is None else (*cut_names(scene, found.cut), *root.names)
    function = "" if off is None else off.scope.function or ""
    return Finding(
        cause="grad_mode_off",
        confidence=Confidence.PROVEN if off is not None else Confidence.LIKELY,
        facts={
            "root": found.root_text,
            "off": "" if place is None else place.source,
            "place": "" if place is None else label(place),
            "function": function,
            "operation": _operation(scene, found),
        },
        tensors=(_culprit(names, function), root),
        events=(*cause, scene.failed()),
        variant="left_off" if off is None or found.still_off else off.by.value,
        details=Details(
            None if off is None else off.by,
            scene.places_at(_unrecorded(scene, found)),
            None if found.still_off else differentiated_inside(scene, found),
        ),
    )


def _of_library(scene: Scene, found: NoGraph, mode: LibraryMode) -> Finding[Details]:
    """A library runs the user's code without recording, which asks for a derivative there."""
    observed = Certainty.OBSERVED
    return Finding(
        cause="grad_mode_off",
        confidence=Confidence.PROVEN if found.trace.carries else Confidence.LIKELY,
        facts={
            "root": found.root_text,
            "off": mode.line.source,
            "place": label(mode.line),
            "function": "",
            "operation": mode.call.source,
        },
        tensors=(_culprit(found.fact.names, ""), found.fact),
        events=(
            Event(What.CAUSE, mode.call, certainty=observed, inside=mode.line),
            scene.failed(),
        ),
        variant="inference" if mode.inference else "library",
        details=Details(None, inside=differentiated_inside(scene, found)),
    )


def _operation(scene: Scene, found: NoGraph) -> str:
    """What ran unrecorded: what cut the graph, or what made the loss in a decorated function."""
    if found.cut is not None:
        return found.cut.spot.text
    made = () if found.still_off or found.root is None else scene.slicer.makers(found.root)
    return made[0].text if len(made) == 1 else ""


def _culprit(names: tuple[str, ...], function: str) -> TensorFact:
    extra = (function,) if function else ()
    return TensorFact(Role.CULPRIT, tuple(dict.fromkeys((*names, *extra))), requires_grad=False)


def _unrecorded(scene: Scene, found: NoGraph) -> tuple[ExprAt, ...]:
    """The operations between the first that should have been recorded and the loss, as far as
    they stand in the block."""
    if found.cut is None or found.off is None or found.root is None:
        return ()
    index = scene.slicer.index(found.off.scope.source)
    block, first = found.off.node, found.cut.spot
    inner = [s for s in computation(scene, found.root) if block in index.ancestors(s.node)]
    later = [s for s in inner if s.node is not first.node and _reads(scene, s, first)]
    return (first, *later[:12])


def _reads(scene: Scene, spot: ExprAt, first: ExprAt) -> bool:
    return any(s.node is first.node for s in computation(scene, spot))
