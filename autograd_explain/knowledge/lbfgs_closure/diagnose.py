"""LBFGS without its closure, with parameter groups, or a closure given to a GradScaler."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import failing_call
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = ("optimizer-lbfgs-no-closure", "optimizer-lbfgs-groups", "gradscaler-closure")

EXAMPLE = {
    "place": "In[2]:4",
    "call": "optimizer.step()",
    "optimizer": "optimizer",
}

_VARIANTS = {"optimizer-lbfgs-groups": "groups", "gradscaler-closure": "scaler"}


def diagnose(scene: Scene) -> Finding | None:
    call = failing_call(scene)
    owner = call and call.receiver
    return finding_from_message(
        scene,
        "lbfgs_closure",
        EXAMPLE,
        facts={
            "call": "" if call is None else call.text,
            "optimizer": "" if owner is None else owner.text,
        },
        at=call,
        variant=_VARIANTS.get(scene.match.pattern, ""),
        confidence=Confidence.PROVEN if call is not None else Confidence.LIKELY,
    )
