"""`torch.autograd.grad` was asked for the gradient of a tensor that does not require grad."""

import ast
from dataclasses import dataclass
from enum import Enum

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.cut_kinds import makes_leaf
from autograd_explain.inspect.facts.embedded_ids import EmbeddedIds, embedded_ids
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.freezing import freezer_of
from autograd_explain.inspect.facts.opposite_method import flags_set_before
from autograd_explain.inspect.facts.torch_call import (
    failing_call,
    maker,
    tensor_fact,
    without_flag,
)
from autograd_explain.inspect.facts.value_names import stored_names
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Place, label

from .parameter_lists import parameter_lists

PATTERNS = ("grad-of-nongrad-input",)

EXAMPLE = {
    "place": "In[1]:4",
    "tensor": "t",
    "index": "1",
    "maker": "torch.linspace(0, 1, 5)",
    "all": "[x, t]",
}


class Way(Enum):
    """What can be done where the tensor is made, or given."""

    FILTER = "filter"  #: leave out the parameters that require no gradient
    FLAG = "flag"  #: ask for the gradient


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    way: Way | None
    given: Place | None = None  #: what `torch.autograd.grad` was given of what was switched off
    again: str = ""  #: what asks for its gradient again, `{x}` being that
    ids: EmbeddedIds | None = None  #: it holds ids that an embedding layer looks up
    lists: tuple[Place, ...] = ()  #: where the program goes through the parameters in their order


def diagnose(scene: Scene) -> Finding[Details] | None:
    found = without_flag(scene)
    if found is None:
        return None
    index, tensor, shown = found
    call = failing_call(scene, "grad", "backward")
    given = call and call.argument(1, "inputs")
    if shown is given and isinstance(tensor, torch.nn.Parameter):
        shown = None
    if any(node.variable is tensor for node in scene.graph.nodes):
        told = _switched_off(scene, tensor, given)
    else:
        told = _never_on(scene, tensor, shown, given)
    fact = tensor_fact(scene, tensor, "" if shown is None else shown.text)
    return finding_from_message(
        scene,
        "input_without_grad",
        EXAMPLE,
        facts={
            "tensor": fact.names[0] if fact.names else "",
            "index": str(index),
            "all": "" if given is None else given.text,
            **told.facts,
        },
        at=told.at,
        variant=told.variant,
        confidence=Confidence.PROVEN,
        tensors=(fact,),
    ).with_details(told.details)


@dataclass(frozen=True)
class _Told:
    """How the tensor came not to require grad."""

    facts: dict[str, str]
    at: ExprAt | Place | None
    variant: str
    details: Details


def _never_on(
    scene: Scene, tensor: torch.Tensor, shown: ExprAt | None, given: ExprAt | None
) -> _Told:
    made = maker(scene, shown) or _cutting_maker(scene, shown)
    frozen = isinstance(tensor, torch.nn.Parameter)
    return _Told(
        {"maker": "" if made is None else made.text},
        given if frozen or made is None else made,
        "frozen" if frozen else "",
        _details(scene, _way(scene, frozen, made), shown, given, tensor),
    )


def _switched_off(scene: Scene, tensor: torch.Tensor, given: ExprAt | None) -> _Told:
    """The graph leads to it: it required grad when that was recorded, and something switched that
    off since."""
    freezer = freezer_of(scene, tensor)
    switch = flags_set_before(scene) if freezer is None else scene.place_at(freezer)
    alone = given is not None and scene.slicer.value(given) is tensor
    again = "{x}.requires_grad_()" if alone else "[p.requires_grad_() for p in {x}]"
    return _Told(
        {"maker": "" if switch is None else switch.source, "place": label(switch)},
        given if switch is None else switch,
        "switched",
        Details(None, given=scene.place_at(given), again=again),
    )


def _details(
    scene: Scene,
    way: Way | None,
    shown: ExprAt | None,
    given: ExprAt | None,
    tensor: torch.Tensor,
) -> Details:
    """Whole numbers cannot be asked for a gradient."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return Details(None, ids=embedded_ids(scene, shown))
    return Details(way, lists=parameter_lists(scene, given) if way is Way.FILTER else ())


def _cutting_maker(scene: Scene, shown: ExprAt | None) -> ExprAt | None:
    """The one of several expressions behind the input that passes no gradient on: the update of a
    loop, run without recording, that gives the name its next value."""
    makers = () if shown is None else scene.slicer.makers(shown)
    cutting = [m for m in makers if scene.gradient_tracer.cut_at(m) is not None]
    return cutting[0] if len(cutting) == 1 else None


def _way(scene: Scene, frozen: bool, made: ExprAt | None) -> Way | None:
    if frozen:
        return Way.FILTER
    if made is None:
        return None
    if isinstance(made.node, ast.Call) and made.called in ("detach", "detach_"):
        return None
    return Way.FLAG if makes_leaf(made.node) or stored_names(scene, made) else None
