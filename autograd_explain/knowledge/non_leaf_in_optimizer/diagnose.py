"""An optimizer was given a tensor that is the result of an operation."""

from dataclasses import dataclass

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.non_leaf import NonLeaf, analyse, events, fact
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Event, Finding, Place, What, label

from .optimizer_call import Refused, refused_next, refused_parameter
from .property_read import PropertyRead, properties_read
from .table_read import is_trained_through, stored_in_table
from .whole_leaf import WholeLeaf, whole_leaf

PATTERNS = ("optimizer-nonleaf",)

EXAMPLE = {
    "tensor": "prompt.tokens",
    "maker": "torch.randn(length, width, requires_grad=True) * 0.02",
    "place": "In[1]:8",
    "leaf": "",
    "node": "MulBackward0",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    table: bool  #: stored in a table of attributes
    trained: bool  #: nothing but what is stored there is trained
    whole: WholeLeaf | None = None  #: what it is a part of
    #: the properties that give computed values, each with the parameter in its place
    properties: tuple[tuple[Place | None, str], ...] = ()
    #: where the other tensors were computed that would be refused for the same reason
    others: tuple[Place, ...] = ()


def diagnose(scene: Scene) -> Finding[Details] | None:
    refused = refused_parameter(scene)
    if refused is None:
        return None
    properties = properties_read(scene, refused)
    shown = properties[0].spot if properties else refused.shown
    found = analyse(scene, refused.tensor, shown)
    written = None if found.maker is not None else stored_in_table(scene, refused.tensor)
    culprit = fact(scene, found)
    maker = found.maker or written or (properties[0].spot if properties else None)
    trained = written is not None and is_trained_through(refused.tensor, refused.given)
    return Finding(
        cause="non_leaf_in_optimizer",
        confidence=Confidence.PROVEN,
        facts={
            "tensor": culprit.names[0] if culprit.names else "",
            "maker": "" if maker is None else maker.text,
            "place": "" if maker is None else label(scene.place_at(maker)),
            "leaf": found.leaf_names[0] if found.leaf_names else "",
            "node": culprit.grad_fn or "",
        },
        tensors=(culprit,),
        events=(*_events(scene, found, maker), scene.failed()),
        variant="table" if written is not None else _variant(found, properties),
        details=Details(
            written is not None,
            trained,
            None if properties else whole_leaf(scene, found),
            tuple((scene.place_at(read.spot), read.code) for read in properties),
            _others(scene, refused, found),
        ),
    )


def _others(scene: Scene, refused: Refused, found: NonLeaf) -> tuple[Place, ...]:
    """Where the program computes what else is refused, as long as that is of the same sort."""
    first = None if found.maker is None else scene.place_at(found.maker)
    places: dict[Place, None] = {}
    for other in refused_next(scene, refused) if first is not None else ():
        beside = analyse(scene, other.tensor, other.shown)
        place = None if beside.maker is None else scene.place_at(beside.maker)
        alike = beside.lost_leaf == found.lost_leaf and whole_leaf(scene, beside) is None
        if place is not None and place != first and alike:
            places[place] = None
    return tuple(places)


def _events(scene: Scene, found: NonLeaf, maker: ExprAt | None) -> tuple[Event, ...]:
    if maker is None or found.maker is not None:
        node = found.tensor.grad_fn
        return events(scene, found, None if node is None else node.name())
    return (scene.event_at(What.CAUSE, maker),)


def _variant(found: NonLeaf, properties: tuple[PropertyRead, ...]) -> str:
    if properties:
        return "property"
    if isinstance(found.leaf, torch.nn.Parameter) and found.leaf_names:
        return "parameter"
    return ""
