"""A Python value, a branch or a size that depends on the values of a batched tensor."""

import ast
from dataclasses import dataclass
from enum import Enum

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "vmap-item",
    "vmap-control-flow",
    "vmap-item-or-control-flow",
    "vmap-dynamic-shape",
    "vmap-boolean-mask",
    "vmap-one-hot",
    "vmap-allclose",
    "functorch-data-access-vmap",
)

#: Torch 2.13 says this where it cannot tell the two apart.
MESSAGES = {
    "vmap-item-or-control-flow": "vmap: It looks like you're either (1) calling .item() on a "
    "Tensor or (2) attempting to use a Tensor in some data-dependent control flow",
}

EXAMPLE = {"call": "v < 1", "op": ""}

VARIANTS = {
    "vmap-item": "item",
    "vmap-control-flow": "branch",
    "vmap-dynamic-shape": "shape",
    "vmap-boolean-mask": "mask",
}


class Why(Enum):
    """What the data decides; also the variant of the texts."""

    ITEM = "item"
    BRANCH = "branch"
    SHAPE = "shape"
    MASK = "mask"
    UNKNOWN = ""


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    why: Why


def diagnose(scene: Scene) -> Finding[Details] | None:
    known = VARIANTS.get(scene.match.pattern, "")
    either = scene.match.pattern == "vmap-item-or-control-flow"
    variant = ("branch" if _decides(scene) else "item") if either else known
    told = finding_from_message(scene, "vmap_data_dependent", EXAMPLE, variant=variant)
    return told.with_details(Details(Why(variant)))


def _decides(scene: Scene) -> bool:
    """Whether the failing expression is the test of a branch or a loop."""
    spot = scene.surfaced
    if spot is None:
        return False
    parent = scene.slicer.index(spot.scope.source).parents.get(spot.node)
    kinds = (ast.If, ast.IfExp, ast.While, ast.BoolOp, ast.UnaryOp)
    return isinstance(parent, kinds) or isinstance(spot.node, ast.Compare)
