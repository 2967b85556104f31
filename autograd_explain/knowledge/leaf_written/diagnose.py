"""A leaf tensor that requires grad was written in place."""

from autograd_explain.inspect.facts.leaf_write import (
    LeafWriteDetails,
    find_leaf_write,
    leaf_finding,
)
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = ("leaf-inplace", "custom-function-leaf-inplace")

EXAMPLE = {
    "tensor": "weight",
    "write": "weight -= 0.1 * weight.grad",
    "place": "In[2]:4",
    "module": "",
    "backward": "",
    "last": "",
}


def diagnose(scene: Scene) -> Finding[LeafWriteDetails] | None:
    found = find_leaf_write(scene)
    if found is None:
        return None
    return leaf_finding(scene, found, "leaf_written")
