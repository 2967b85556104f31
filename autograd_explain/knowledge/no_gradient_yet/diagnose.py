"""`.grad` of a leaf was used while it is None."""

import ast
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch

from autograd_explain.inspect.dataflow import CutKind, ExprAt
from autograd_explain.inspect.dataflow.cut_kinds import makes_leaf
from autograd_explain.inspect.facts.expressions import attribute_read, computation
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.leaf_updates import leaf_updates
from autograd_explain.inspect.facts.lost_gradient import lost_behind
from autograd_explain.inspect.facts.torch_call import before, calls_in, live_value, tensor_fact
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Place, label

from .grad_alias import GradAlias, grad_alias

PATTERNS = ("grad-none-attribute", "grad-none-arithmetic", "grad-none-first", "grad-none-unary")

EXAMPLE = {
    "place": "In[2]:2",
    "tensor": "w",
    "use": "w.grad.zero_()",
    "cleared": "",
    "cleared_place": "?",
    "leaf": "",
    "maker": "",
    "maker_place": "?",
    "new_leaf": "",
    "new_leaf_place": "?",
    "no_backward": "w.grad.zero_()",
}


class Why(Enum):
    """Why there is none; also the variant of the texts."""

    ALIAS = "alias"
    NO_FLAG = "no_flag"
    ZEROED = "zeroed"
    CLEARED = "cleared"
    NO_BACKWARD = "no_backward"
    UNUSED = "unused"
    NEW_LEAF = "new_leaf"  #: made of a computed value on the way to the loss
    UNKNOWN = ""


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    why: Why
    read: Place | None
    leaf: Place | None  #: what the alias was made from


def diagnose(scene: Scene) -> Finding[Details] | None:
    shown = attribute_read(scene, "grad")
    tensor: Any = live_value(scene, shown)
    place = scene.place
    if shown is None or (isinstance(tensor, torch.Tensor) and not _is_missing(tensor)):
        return None
    if isinstance(tensor, torch.Tensor) and not tensor.requires_grad:
        if leaf_updates(scene, shown):
            return None  # it had a gradient until an update took its name
    cleared = _cleared(scene, shown)
    alias = grad_alias(scene, shown, tensor)
    why = Why.ALIAS if alias is not None else _why(scene, shown, tensor, cleared)
    made = _new_leaf(scene) if why in (Why.UNUSED, Why.UNKNOWN) else None
    why = why if made is None else Why.NEW_LEAF
    if why in (Why.UNUSED, Why.UNKNOWN) and isinstance(tensor, torch.Tensor):
        if lost_behind(scene, tensor) is not None:
            return None  # it was cut off, which another cause tells
    fact = tensor_fact(scene, tensor if isinstance(tensor, torch.Tensor) else None, shown.text)
    sure = why is not Why.UNKNOWN and isinstance(tensor, torch.Tensor)
    return finding_from_message(
        scene,
        "no_gradient_yet",
        EXAMPLE,
        facts={
            "tensor": fact.names[0] if fact.names else shown.text,
            "use": "" if place is None else place.source,
            "cleared": "" if cleared is None else cleared.text,
            "cleared_place": label(scene.place_at(cleared)),
            "leaf": "" if alias is None else alias.leaf,
            "maker": "" if alias is None or alias.maker is None else alias.maker.text,
            "maker_place": label(scene.place_at(None if alias is None else alias.maker)),
            "new_leaf": "" if made is None else made.text,
            "new_leaf_place": label(scene.place_at(made)),
            "no_backward": "" if place is None or _has_run_backward(scene) else place.source,
        },
        at=made or _blamed(shown, why, cleared, alias),
        variant=why.value,
        confidence=Confidence.PROVEN if sure else Confidence.LIKELY,
        tensors=(fact,),
    ).with_details(
        Details(
            why,
            read=scene.place_at(shown),
            leaf=scene.place_at(None if alias is None else alias.original),
        )
    )


def _blamed(shown: ExprAt, why: Why, cleared: ExprAt | None, alias: GradAlias | None) -> ExprAt:
    if alias is not None:
        return alias.maker or shown
    return cleared if why is Why.CLEARED and cleared is not None else shown


def _is_missing(tensor: torch.Tensor) -> bool:
    """A leaf's; reading `.grad` of another tensor is another cause, and warns."""
    return tensor.is_leaf and tensor.grad is None


def _why(scene: Scene, shown: ExprAt, tensor: Any, cleared: ExprAt | None) -> Why:
    if isinstance(tensor, torch.Tensor) and not tensor.requires_grad:
        return Why.NO_FLAG
    if _zeroes(scene, shown):
        return Why.ZEROED
    if cleared is not None:
        return Why.CLEARED
    if next(calls_in(scene, "backward"), None) is None:
        return Why.NO_BACKWARD
    unused = isinstance(tensor, torch.Tensor) and _others_have(scene, tensor)
    return Why.UNUSED if unused else Why.UNKNOWN


def _zeroes(scene: Scene, shown: ExprAt) -> bool:
    """`x.grad.zero_()`, and before any backward has filled it."""
    statement = scene.slicer.statement(scene.surfaced or shown)
    value = getattr(statement, "value", None)
    return (
        isinstance(statement, ast.Expr)
        and isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr in ("zero_", "fill_", "detach_")
    )


def _has_run_backward(scene: Scene) -> bool:
    """Whether some backward came before, as far as is known: it was noted, or left a gradient."""
    if any(m.op == "backward" for m in scene.history.steps):
        return True
    leaves = (n.tensor for n in scene.names.tensors if n.tensor.is_leaf)
    return any(leaf.grad is not None for leaf in leaves)


def _cleared(scene: Scene, shown: ExprAt) -> ExprAt | None:
    """`zero_grad()` between the backward and the failing line of the same function or cell."""
    here = [
        s
        for s in calls_in(scene, "backward", "zero_grad")
        if s.scope.body is shown.scope.body and before(scene, s, shown)
    ]
    here.sort(key=lambda s: (s.node.lineno, s.node.col_offset))
    last = next((i for i, s in reversed(list(enumerate(here))) if "backward" in s.text), None)
    later = [] if last is None else [s for s in here[last + 1 :] if "zero_grad" in s.text]
    return later[0] if later else None


def _new_leaf(scene: Scene) -> ExprAt | None:
    """`nn.Parameter(w - lr * g)` on the way to a loss that went backward: the gradient of what it
    was computed from ends there."""
    losses = [s.receiver for s in calls_in(scene, "backward")]
    for loss in (spot for spot in losses if spot is not None):
        for made in (*scene.slicer.makers(loss), *computation(scene, loss)):
            given = made.argument(0, "data") if made.called == "Parameter" else None
            if given is not None and not makes_leaf(given.node) and _has_graph(scene, given):
                return made
    return None


def _has_graph(scene: Scene, spot: ExprAt) -> bool:
    """Whether a value has a graph, or would but for what an update under no_grad was made of."""
    trace = scene.gradient_tracer.trace(spot)
    updates = (CutKind.GRADIENT, CutKind.NO_GRAD)
    return trace.carries or any(cut.kind in updates for cut in trace.cuts)


def _others_have(scene: Scene, tensor: torch.Tensor) -> bool:
    """Whether a backward has filled other parameters of a module that this one belongs to."""
    for _, owner in scene.names.objects:
        if isinstance(owner, torch.nn.Module):
            params = list(owner.parameters())
            if any(p is tensor for p in params) and any(p.grad is not None for p in params):
                return True
    return False
