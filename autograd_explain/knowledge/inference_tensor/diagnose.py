"""A tensor made in inference mode was used where autograd works."""

import ast
from dataclasses import dataclass
from itertools import chain

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.safe_lookup import own
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import tensor_fact
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Confidence, Finding, Place, What, label

from .inference import (
    handed_over,
    inference_tensors,
    kept_by_owners,
    origin_of,
    spelled,
    unpacked_together,
)

PATTERNS = (
    "inference-saved-for-backward",
    "inference-inplace-outside",
    "inference-no-version-counter",
    "inference-requires-grad-outside",
    "inference-set-version-counter",
)

EXAMPLE = {
    "place": "In[2]:1",
    "tensor": "features",
    "maker": "torch.relu(backbone(x))",
    "mode": "torch.inference_mode()",
    "made_place": "In[2]:2",
    "use": "loss = head(features).square().mean()",
    "use_place": "In[3]:1",
}

_VARIANTS = {
    "inference-inplace-outside": "written",
    "inference-requires-grad-outside": "flag",
    "inference-no-version-counter": "counter",
    "inference-set-version-counter": "counter",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    mode: bool  #: the cause is where the mode is switched on
    use: Place | None = None
    others: tuple[Place, ...] = ()  #: where the same statement reads more such tensors
    tensor: str = ""
    together: tuple[str, ...] = ()  #: the names of such tensors unpacked with it
    written: bool = False  #: refused was a write, not a read
    flagged: bool = False  #: refused was that it be made to require grad


def diagnose(scene: Scene) -> Finding[Details] | None:
    known = chain(inference_tensors(scene), handed_over(scene), kept_by_owners(scene))
    found = next(known, None)
    if found is None:  # the message leaves no doubt, but the tensor has no name
        told = finding_from_message(scene, "inference_tensor", EXAMPLE, _VARIANTS)
        return told.with_details(Details(mode=False))
    shown, tensor = found
    origin, place = origin_of(scene, shown, tensor), scene.place
    made, mode, around = origin.made, origin.mode, origin.around
    name = next(spelled(scene, shown.text), shown.text)
    fact = tensor_fact(scene, tensor, shown.text, name)
    variant = _VARIANTS.get(scene.match.pattern, "")
    if not around and made is not None and not variant:
        variant = "elsewhere"
    return finding_from_message(
        scene,
        "inference_tensor",
        EXAMPLE,
        facts={
            "tensor": name,
            "maker": "" if made is None else made.text,
            "mode": mode.text if mode is not None and around else "",
            "place": label(scene.place_at(mode)) if around else "",
            "made_place": label(scene.place_at(made)),
            "use": "" if place is None else place.source,
            "use_place": label(place),
        },
        at=mode or (made if variant == "elsewhere" else None) or shown,
        variant=variant,
        confidence=Confidence.PROVEN,
        tensors=(fact,),
        more=() if made is None else (scene.event_at(What.CREATED, made),),
    ).with_details(
        Details(
            mode=mode is not None,
            use=scene.place_at(shown) if _can_be_copied(scene, shown, variant) else None,
            others=_others(scene, shown),
            tensor=shown.text,
            together=unpacked_together(scene, shown),
            written=variant == "written",
            flagged=variant == "flag",
        )
    )


def _can_be_copied(scene: Scene, shown: ExprAt, variant: str) -> bool:
    """Whether a copy at the failing line is all that it needs: not of what a function behind the
    line reads, nor of one of several that the same object keeps."""
    kept = own(scene.names.holder(shown.text)).values()
    several = sum(is_a(v, torch.Tensor) and v.is_inference() for v in kept) > 1
    return not shown.spelled or (variant == "written" and not several)


def _others(scene: Scene, shown: ExprAt) -> tuple[Place, ...]:
    """The first of each of the other names that the failing statement reads such tensors by."""
    found = {spot.text: spot for spot, _ in reversed([*inference_tensors(scene)])}
    whole = [shown]
    for spot in reversed(found.values()):
        if not any(_overlap(spot, other) for other in whole):
            whole.append(spot)
    return scene.places_at(whole[1:])


def _overlap(one: ExprAt, other: ExprAt) -> bool:
    """Whether one is a part of the other: `cos` of `cos[:n]`."""
    inside = {id(n) for n in ast.walk(one.node)}
    return id(other.node) in inside or id(one.node) in {id(n) for n in ast.walk(other.node)}
