"""Dual tensors of forward-mode AD outside of a level, or across levels."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import failing_call
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = (
    "forward-ad-no-level",
    "forward-ad-exit-wrong",
    "forward-ad-enter-invalid",
    "forward-ad-nested",
    "forward-ad-dual-twice",
    "forward-ad-tangent-has-tangent",
)

EXAMPLE = {"place": "In[1]:6", "call": "fwAD.make_dual(x, direction)"}


def diagnose(scene: Scene) -> Finding | None:
    call = failing_call(scene)
    return finding_from_message(
        scene,
        "forward_ad_level",
        EXAMPLE,
        facts={"call": "" if call is None else call.text},
        at=call,
        variant="" if scene.match.pattern == "forward-ad-no-level" else "nested",
        confidence=Confidence.PROVEN if call is not None else Confidence.LIKELY,
    )
