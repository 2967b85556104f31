"""A tensor was written in place whose elements share memory with each other or with the input."""

from dataclasses import dataclass

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.statements import write_at
from autograd_explain.inspect.facts.torch_call import live_value, maker, tensor_fact
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, label

PATTERNS = ("overlap-written-to-expand", "overlap-input-and-output")

EXAMPLE = {
    "place": "In[2]:1",
    "tensor": "grid",
    "maker": "row.expand(3, 4)",
    "write": "grid.mul_(scale)",
    "write_place": "In[2]:2",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    expanded: bool


def diagnose(scene: Scene) -> Finding[Details] | None:
    place = scene.place
    write, spot = write_at(scene.program, place), scene.surfaced
    if write is None or spot is None:
        return None
    target = spot.inside(write.target)
    made = maker(scene, target)
    whole = scene.match.pattern == "overlap-written-to-expand"
    expanded = whole and made is not None and made.called in _EXPANDING
    return finding_from_message(
        scene,
        "written_tensor_overlaps",
        EXAMPLE,
        facts={
            "tensor": target.text,
            "maker": "" if made is None else made.text,
            "write": "" if place is None else place.source,
            "write_place": label(place),
        },
        at=made if expanded else spot,
        variant="" if whole else "input",
        confidence=Confidence.PROVEN,
        tensors=(tensor_fact(scene, live_value(scene, target), target.text),),
    ).with_details(Details(expanded))


_EXPANDING = ("expand", "expand_as", "broadcast_to", "as_strided", "unfold", "broadcast_tensors")
