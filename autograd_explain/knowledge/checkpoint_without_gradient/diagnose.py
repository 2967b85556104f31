"""Reentrant checkpoint without an input that requires grad."""

from autograd_explain.inspect.facts.called_back import library_asked
from autograd_explain.inspect.facts.checkpointed import (
    UnrecordedCheckpoint,
    asked_for,
    is_frozen,
    read_by_failing,
    unrecorded,
)
from autograd_explain.inspect.facts.finding_from_message import failing_place, finding_from_message
from autograd_explain.inspect.facts.no_graph import NoGraph, find
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Role, TensorFact, What

from .in_library import asked_of_library, checkpointed

PATTERNS = (
    "checkpoint-no-input-requires-grad",
    "checkpoint-not-necessary",
    "no-grad-fn",
)

EXAMPLE = {
    "call": "checkpoint(encoder, batch, use_reentrant=True)",
    "root": "",
}

VARIANTS = {
    "checkpoint-not-necessary": "output",
}


def diagnose(scene: Scene) -> Finding | None:
    if scene.match.pattern == "no-grad-fn":
        found = find(scene)
        if found is None:
            return None
        off = unrecorded(scene, found)
        if off is not None:
            return _of_backward(scene, found, off, off.calls[0].text)
        asked = asked_of_library(scene, found)
        return None if asked is None else _of_backward(scene, found, *asked)
    if library_asked(scene) is not None:
        return _of_library(scene)
    # The other kind of checkpoint would give a frozen module no gradient either.
    other = scene.match.pattern == "checkpoint-not-necessary" or is_frozen(scene)
    at = None if other else failing_place(scene)
    read = read_by_failing(scene) if at is not None else ()
    return finding_from_message(
        scene,
        "checkpoint_without_gradient",
        EXAMPLE,
        VARIANTS,
        at=at,
        tensors=(TensorFact(Role.CULPRIT, read, requires_grad=False),) if read else (),
    )


def _of_library(scene: Scene) -> Finding:
    """Where the program asked a library for checkpoints of that kind, if it did."""
    asked = tuple(asked_for(scene))
    call = "" if scene.surfaced is None else scene.surfaced.text
    return finding_from_message(
        scene,
        "checkpoint_without_gradient",
        EXAMPLE,
        facts={"call": call},
        at=asked[0] if asked else None,
        more=[scene.event_at(What.CAUSE, a) for a in asked[1:]],
        tensors=(TensorFact(Role.CULPRIT, _trained(scene), requires_grad=True),),
        variant="library",
    )


def _trained(scene: Scene) -> tuple[str, ...]:
    """What the warning's line calls, and what of it is trained in vain."""
    called = None if scene.surfaced is None else scene.surfaced.callable
    return (*(() if called is None else (called.text,)), *checkpointed(scene))


def _of_backward(scene: Scene, found: NoGraph, off: UnrecordedCheckpoint, call: str) -> Finding:
    """The error that follows where nothing else of the loss is recorded; `call` is what computed
    it."""
    first, root = off.calls[0], found.fact
    names = tuple(dict.fromkeys((*off.read, *root.names)))
    return finding_from_message(
        scene,
        "checkpoint_without_gradient",
        EXAMPLE,
        facts={"call": call, "root": found.root_text},
        at=first,
        more=[scene.event_at(What.CAUSE, c) for c in off.calls[1:]],
        tensors=(TensorFact(Role.CULPRIT, names, requires_grad=False), root),
        variant="backward",
        confidence=Confidence.PROVEN if off.certain else Confidence.LIKELY,
    )
