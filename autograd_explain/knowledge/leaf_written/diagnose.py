"""A leaf tensor that requires grad was written in place."""

from autograd_explain.inspect.attribution import label
from autograd_explain.inspect.leaf_write import find_leaf_write, leaf_fact, refused
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = ("leaf-inplace", "custom-function-leaf-inplace")

EXAMPLE = {
    "tensor": "weight",
    "write": "weight -= 0.1 * weight.grad",
    "place": "In[2]:4",
}


def diagnose(scene: Scene) -> Finding | None:
    found = find_leaf_write(scene)
    if found is None:
        return None
    leaf = found.leaf
    proven = leaf is not None and leaf.is_leaf and leaf.requires_grad
    place = scene.place
    return Finding(
        cause="leaf_written",
        confidence=Confidence.PROVEN if proven else Confidence.LIKELY,
        facts={
            "tensor": found.tensor_names[0],
            "write": place.source if place is not None else "",
            "place": label(place),
        },
        tensors=(leaf_fact(scene, found),),
        events=refused(scene, found),
        variant=found.purpose,
    )
