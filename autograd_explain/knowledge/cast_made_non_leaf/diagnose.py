"""`.grad` was read of a tensor that the user takes for the leaf: a cast or copy came between."""

from dataclasses import dataclass

from autograd_explain.inspect.facts.grad_access import non_leaf_read
from autograd_explain.inspect.facts.non_leaf import NonLeaf, events, fact
from autograd_explain.inspect.facts.replaced_leaf import ReplacedLeaf
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, label

PATTERNS = ("nonleaf-grad-access", "grad-none-arithmetic", "grad-none-attribute")

EXAMPLE = {
    "tensor": "params['rate']",
    "maker": "raw.float()",
    "place": "In[1]:11",
    "leaf": "",
    "node": "ToCopyBackward0",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    update: ReplacedLeaf | None  #: `w = w - lr * w.grad`
    named: bool  #: the leaf has a name of its own


def diagnose(scene: Scene) -> Finding[Details] | None:
    found = non_leaf_read(scene)
    if found is None or not (found.lost_leaf or found.renamed_leaf):
        return None
    culprit = fact(scene, found)
    return Finding(
        cause="cast_made_non_leaf",
        confidence=Confidence.PROVEN if found.maker is not None else Confidence.LIKELY,
        facts={
            "tensor": culprit.names[0] if culprit.names else "",
            "maker": "" if found.maker is None else found.maker.text,
            "place": label(scene.place_at(found.maker)) if found.maker is not None else "",
            "leaf": found.leaf_names[0] if found.leaf_names else "",
            "node": culprit.grad_fn or "",
        },
        tensors=(culprit,),
        events=(*events(scene, found, culprit.grad_fn), scene.failed()),
        variant=_variant(found),
        details=Details(
            update=found.replaced,
            named=found.renamed_leaf,
        ),
    )


def _variant(found: NonLeaf) -> str:
    if found.renamed_leaf:
        return "named"
    return "" if found.replaced is None else "update"
