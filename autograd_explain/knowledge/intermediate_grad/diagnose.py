"""`.grad` was read of an intermediate result, which backward does not keep."""

from dataclasses import dataclass

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.expressions import attribute_read
from autograd_explain.inspect.facts.grad_access import (
    is_started_from,
    non_leaf_read,
    told,
    unseen_read,
    whole_with_gradient,
)
from autograd_explain.inspect.facts.non_leaf import left_by
from autograd_explain.inspect.facts.property_leaves import leaves_of_property
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Event, Finding, Place, What, label

PATTERNS = (
    "nonleaf-grad-access",
    "grad-none-arithmetic",
    "grad-none-first",
    "grad-none-unary",
    "grad-none-attribute",
)


@dataclass(frozen=True)
class Details:
    """What the rewrites go by: whether a part of a leaf was asked, which has it itself."""

    of_whole: bool = False
    read: Place | None = None  #: the property that was read, where
    leaf: str = ""  #: the one leaf that it is computed from
    inside: bool = False  #: what is told as its maker gave an object that it is a part of


EXAMPLE = {
    "tensor": "net.hidden",
    "maker": "torch.tanh(self.inner(x))",
    "place": "In[1]:13",
    "node": "TanhBackward0",
    "leaf": "",
    "kept": "net.hidden",
}


def diagnose(scene: Scene) -> Finding[Details] | None:
    found = non_leaf_read(scene)
    if found is None:
        return _from_source(scene)
    if found.lost_leaf or found.renamed_leaf:
        return None
    facts, made = told(scene, found)
    culprit, maker = facts[0], found.computed
    return Finding(
        cause="intermediate_grad",
        confidence=Confidence.PROVEN,
        facts={
            "tensor": culprit.names[0] if culprit.names else "",
            "maker": "" if maker is None else maker.text,
            "place": "" if maker is None else label(scene.place_at(maker)),
            "node": culprit.grad_fn or "",
            "leaf": "",
            "kept": ", ".join(dict.fromkeys(t.names[0] for t in facts if t.names)),
        },
        tensors=facts,
        events=(*(made or _read(scene)), scene.failed()),
        variant="root" if is_started_from(scene, found) else "",
        details=Details(
            whole_with_gradient(scene) is not None, inside=found.computed is not found.maker
        ),
    )


def _from_source(scene: Scene) -> Finding[Details] | None:
    """The warning alone says that it is a result; the source may show of what."""
    read = unseen_read(scene)
    if read is None:
        return None
    tensor, maker = read
    shown = attribute_read(scene, "grad")
    leaves = leaves_of_property(scene, shown)
    if shown is not None and len(leaves) == 1:
        (leaf,), place = leaves, scene.place_at(shown)
        return Finding(
            cause="intermediate_grad",
            confidence=Confidence.LIKELY,
            facts={**dict.fromkeys(EXAMPLE, ""), "tensor": shown.text, "leaf": leaf},
            tensors=(tensor,),
            events=(Event(What.CAUSE, place), scene.failed()),
            variant="property",
            details=Details(read=place, leaf=leaf),
        )
    left = None if shown is None else left_by(scene, maker or shown, "")
    at = left or maker or shown
    made = () if at is None else (scene.event_at(What.CAUSE, at),)
    of_whole = whole_with_gradient(scene) is not None
    return Finding(
        cause="intermediate_grad",
        confidence=Confidence.PROVEN if of_whole else _confidence(maker),
        facts={
            "tensor": tensor.names[0],
            "maker": "" if maker is None else maker.text,
            "place": "" if maker is None else label(scene.place_at(maker)),
            "node": "",
            "leaf": "",
            "kept": tensor.names[0],
        },
        tensors=(tensor,),
        events=(*made, scene.failed()),
        details=Details(of_whole, inside=left is not None),
    )


def _read(scene: Scene) -> tuple[Event, ...]:
    """Where nothing of the user's has made it, the reading is what there is to change."""
    shown = attribute_read(scene, "grad")
    return () if shown is None else (scene.event_at(What.CAUSE, shown),)


def _confidence(maker: ExprAt | None) -> Confidence:
    return Confidence.GENERAL if maker is None else Confidence.LIKELY
