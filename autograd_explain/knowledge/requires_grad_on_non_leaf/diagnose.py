"""The requires_grad flag of a computed tensor was to be changed."""

import ast
from dataclasses import dataclass, replace
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.non_leaf import analyse
from autograd_explain.inspect.facts.torch_call import live_value, maker, tensor_fact
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Certainty, Confidence, Finding, Place, What, label

from .computed_weight import Instead, flag_set, instead, is_property
from .set_in_library import set_in_library

PATTERNS = ("requires-grad-flag-nonleaf", "requires-grad-flag-nonleaf-true")

EXAMPLE = {
    "place": "In[2]:2",
    "tensor": "target",
    "maker": "teacher(x)",
    "maker_place": "In[2]:1",
    "flag": "target.requires_grad = False",
    "node": "AddmmBackward0",
    "parameters": "",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    wanted: bool  #: the gradient, not to be without it
    replaced: bool = False  #: a leaf that an update has given its name to this tensor
    instead: tuple[Instead, ...] = ()  #: a module computes it from parameters, whose flags count
    library: bool = False  #: a library sets the flag
    switch: str = ""  #: what keeps it from that, a statement
    call: Place | None = None  #: of the library
    part: bool = False  #: it is a part of a leaf, `w[:3]`
    read: bool = False  #: it is a property, which gives what it computes


def diagnose(scene: Scene) -> Finding[Details] | None:
    shown, wanted = _flagged(scene)
    if shown is None:
        return _of_library(scene)
    tensor: Any = live_value(scene, shown)
    if isinstance(tensor, torch.Tensor) and tensor.is_leaf:
        return None
    behind = instead(scene, shown)
    live = analyse(scene, tensor, shown) if isinstance(tensor, torch.Tensor) else None
    replacing = live.maker if live is not None and wanted and live.replaced is not None else None
    made, read = replacing or maker(scene, shown), is_property(scene, shown)
    unseen = read and not wanted and (made is None or made.node is shown.node)
    fact = tensor_fact(scene, tensor, *(b.tensor for b in behind[:1]), shown.text)
    place = scene.place
    return finding_from_message(
        scene,
        "requires_grad_on_non_leaf",
        EXAMPLE,
        facts={
            "tensor": behind[0].tensor if behind else shown.text,
            "maker": "" if made is None else made.text,
            "maker_place": label(scene.place_at(made)),
            "flag": "" if place is None else place.source,
            "node": fact.grad_fn or "",
            "parameters": ", ".join(n for b in behind[:1] for n in b.parameters),
        },
        at=replacing or shown,
        variant=_computed(behind, unseen) or _variant(wanted, replacing is not None),
        confidence=Confidence.PROVEN,
        tensors=(fact,),
    ).with_details(
        Details(wanted, replacing is not None, behind, part=_is_part(scene, shown), read=read)
    )


def _of_library(scene: Scene) -> Finding[Details] | None:
    found = set_in_library(scene)
    if found is None:
        return None
    shown, line = found.given, found.line
    made, fact = maker(scene, shown), tensor_fact(scene, found.tensor, shown.text)
    cause = replace(scene.event_at(What.CAUSE, shown), inside=line, certainty=Certainty.OBSERVED)
    return finding_from_message(
        scene,
        "requires_grad_on_non_leaf",
        EXAMPLE,
        facts={
            "tensor": shown.text,
            "maker": "" if made is None else made.text,
            "maker_place": label(scene.place_at(made)),
            "flag": line.source,
            "node": fact.grad_fn or "",
        },
        at=None,
        more=[cause],
        variant="library",
        confidence=Confidence.PROVEN,
        tensors=(fact,),
    ).with_details(
        Details(not _is_false(found.wanted), library=True, switch=found.switch, call=scene.place)
    )


def _is_part(scene: Scene, shown: ExprAt) -> bool:
    """Whether elements of a leaf are chosen, whose flag is of the whole."""
    node = shown.node
    whole = live_value(scene, shown.inside(node.value)) if isinstance(node, ast.Subscript) else None
    return isinstance(whole, torch.Tensor) and whole.is_leaf and whole.requires_grad


def _computed(behind: tuple[Instead, ...], unseen: bool) -> str:
    if behind:
        return "property" if behind[0].read else "computed"
    return "read" if unseen else ""


def _variant(wanted: bool, replaced: bool) -> str:
    return "replaced" if replaced else "wanted" if wanted else ""


def _flagged(scene: Scene) -> tuple[ExprAt | None, bool]:
    """The expression whose flag was set, and whether it was set to True."""
    spot = scene.surfaced
    statement = None if spot is None else scene.slicer.statement(spot)
    if spot is None or statement is None:
        return None, False
    found = flag_set(statement)
    return (None, False) if found is None else (spot.inside(found[0]), not _is_false(found[1]))


def _is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False
