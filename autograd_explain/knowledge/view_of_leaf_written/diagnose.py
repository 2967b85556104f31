"""A view of a leaf tensor that requires grad was written in place."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.leaf_write import (
    LeafWriteDetails,
    Purpose,
    find_leaf_write,
    leaf_finding,
)
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = ("view-of-leaf-inplace", "leaf-moved-into-graph-interior")

EXAMPLE = {
    "tensor": "limits",
    "write": "limits[0] = 0.5",
    "place": "In[2]:4",
    "module": "",
    "backward": "",
    "last": "",
}


def diagnose(scene: Scene) -> Finding[LeafWriteDetails] | None:
    if scene.match.pattern not in PATTERNS:
        return None  # "a leaf Variable": only torch 1.5 to 1.7 said so of views too
    found = find_leaf_write(scene)
    if found is None:
        moved = scene.match.pattern == "leaf-moved-into-graph-interior"
        if not moved:
            return None
        told = finding_from_message(scene, "view_of_leaf_written", EXAMPLE, at=None)
        return told.with_details(LeafWriteDetails(Purpose.ARITHMETIC, "", ()))
    return leaf_finding(scene, found, "view_of_leaf_written")
