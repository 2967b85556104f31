"""A hook was registered on a tensor that no gradient will reach."""

from dataclasses import dataclass
from enum import Enum

from autograd_explain.inspect.dataflow import ExprAt, best_cut
from autograd_explain.inspect.facts.expressions import method_call
from autograd_explain.inspect.facts.finding_from_message import failing_place, finding_from_message
from autograd_explain.inspect.facts.freezing import missing_flag
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Role, label

PATTERNS = (
    "hook-not-required",
    "cpp-hook-not-required",
    "post-accumulate-hook-nonleaf",
    "gradient-edge-no-grad",
    "cpp-input-no-grad",
)

EXAMPLE = {
    "tensor": "features",
    "operation": "encoder(x).detach()",
    "place": "In[2]:1",
}

_METHODS = ("register_hook", "register_post_accumulate_grad_hook")


class Why(Enum):
    """Why no gradient reaches the tensor; also the variant of the texts."""

    LEAF = "leaf"
    OFF = "off"
    CUT = "cut"
    MADE = "made"
    UNKNOWN = ""


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    why: Why


def diagnose(scene: Scene) -> Finding[Details] | None:
    shown = next((s for s in (method_call(scene, m) for m in _METHODS) if s is not None), None)
    why, cause = _reason(scene, shown)
    value = None if shown is None else scene.slicer.tensor(shown)
    at = scene.place_at(cause)
    return finding_from_message(
        scene,
        "hook_on_constant",
        EXAMPLE,
        facts={
            "tensor": "" if shown is None else shown.text,
            "operation": "" if cause is None else cause.text,
            "place": "" if at is None else label(at),
        },
        at=at or failing_place(scene),
        variant=why.value,
        tensors=() if value is None else (scene.fact(Role.CULPRIT, value),),
        confidence=Confidence.PROVEN if cause is not None else Confidence.LIKELY,
    ).with_details(Details(why))


def _reason(scene: Scene, shown: ExprAt | None) -> tuple[Why, ExprAt | None]:
    """Why no gradient reaches the tensor, and the expression to blame."""
    if scene.match.pattern == "post-accumulate-hook-nonleaf":
        return Why.LEAF, None
    if shown is None:
        return Why.UNKNOWN, None
    trace = scene.gradient_tracer.trace(shown)
    cut = None if trace.carries else best_cut(trace.cuts)
    if cut is not None:
        return (Why.OFF, None) if cut.off is not None else (Why.CUT, cut.spot)
    flag = missing_flag(scene, shown)
    makers = [] if flag is not None else scene.slicer.makers(shown)
    made = flag.maker if flag is not None else (makers[0] if len(makers) == 1 else None)
    if made is None or made.node is shown.node:
        return Why.UNKNOWN, None
    return Why.MADE, made
