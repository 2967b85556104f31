"""An operation has no forward-mode derivative."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import failing_call
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = (
    "forward-ad-not-implemented",
    "forward-ad-inplace-not-implemented",
    "forward-ad-out-function",
    "forward-ad-resize",
    "forward-ad-fallback",
)

EXAMPLE = {
    "place": "In[2]:3",
    "op": "_cdist_forward",
    "call": "torch.cdist(moved, points)",
}


def diagnose(scene: Scene) -> Finding | None:
    call = failing_call(scene)
    return finding_from_message(
        scene,
        "forward_ad_unsupported",
        EXAMPLE,
        facts={
            "op": scene.match.captures.get("op", ""),
            "call": "" if call is None else call.text,
        },
        at=call,
        confidence=Confidence.PROVEN if call is not None else Confidence.LIKELY,
    )
