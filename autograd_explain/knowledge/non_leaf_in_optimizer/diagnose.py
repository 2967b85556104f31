"""An optimizer was given a tensor that is the result of an operation."""

from dataclasses import dataclass

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.non_leaf import NonLeaf, analyse, events, fact
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Event, Finding, What, label

from .optimizer_call import Refused, refused_parameter
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


def diagnose(scene: Scene) -> Finding[Details] | None:
    refused = refused_parameter(scene)
    if refused is None:
        return None
    found = analyse(scene, refused.tensor, refused.shown)
    written = None if found.maker is not None else stored_in_table(scene, refused.tensor)
    culprit = fact(scene, found)
    maker = found.maker or written
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
        events=(*_events(scene, found, refused, written), scene.failed()),
        variant="table" if written is not None else _variant(found),
        details=Details(written is not None, trained, whole_leaf(scene, found)),
    )


def _events(
    scene: Scene, found: NonLeaf, refused: Refused, written: ExprAt | None
) -> tuple[Event, ...]:
    if written is None:
        node = refused.tensor.grad_fn
        return events(scene, found, None if node is None else node.name())
    return (scene.event_at(What.CAUSE, written),)


def _variant(found: NonLeaf) -> str:
    if isinstance(found.leaf, torch.nn.Parameter) and found.leaf_names:
        return "parameter"
    return ""
