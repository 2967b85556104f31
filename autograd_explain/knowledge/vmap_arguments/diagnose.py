"""Arguments and results that vmap cannot map."""

from dataclasses import dataclass

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "vmap-in-dims-non-tensor",
    "vmap-in-dims-structure",
    "vmap-in-dims-type",
    "vmap-in-dim-range",
    "vmap-no-inputs",
    "vmap-nothing-mapped",
    "vmap-sizes-differ",
    "vmap-out-dims-structure",
    "vmap-out-dims-type",
    "vmap-non-tensor-output",
    "vmap-none-out-dim",
    "vmap-chunk-size",
)

EXAMPLE = {
    "in_dim": "0",
    "in_dims": "0",
    "type": "float",
    "sizes": "",
}

VARIANTS = {
    "vmap-in-dims-non-tensor": "plain",
    "vmap-in-dims-structure": "structure",
    "vmap-in-dims-type": "structure",
    "vmap-in-dim-range": "structure",
    "vmap-sizes-differ": "sizes",
    "vmap-non-tensor-output": "output",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    plain: bool  #: an argument that is no tensor was to be mapped


def diagnose(scene: Scene) -> Finding[Details] | None:
    told = finding_from_message(scene, "vmap_arguments", EXAMPLE, VARIANTS)
    return told.with_details(Details(scene.match.pattern == "vmap-in-dims-non-tensor"))
